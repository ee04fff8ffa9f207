"""The outputs kept from timed calls: right in the trials and wrong when timed is wrong, and what is less exact when
timed is less exact."""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from .audit import Facts
from .case import Case
from .check import reported
from .driving import Kept
from .entropy import ENTROPY
from .form import without_unpartnered
from .plans import OUT_OF_RANGE, RANGE_PLANS, ROW, Plan
from .random_tasks import wrong_at_random, wrong_numbers
from .reference import Answer, Reference
from .session import Session

VERIFY_AT_LEAST, VERIFY_S = 3, 2.0
"""Of the outputs kept from timed calls at least so many are compared, and more within this time."""
FIRST = 2
"""Ordinary ones that always are: the quickest on either clock, or one of a run of calls and the quickest."""
_ORDINARY, _EXCHANGED = Plan("timed"), Plan("timed")
"""Told apart by identity: their inputs are alike."""


@dataclass
class TimedAnswers:
    """What the answers of timed calls show together."""

    precision_class: str
    """The least exact one so far."""
    compared: int = 0
    wrong: str | None = None
    """What is wrong with one that is within no class."""
    error: float | None = 0.0
    """The largest error of an element; None where that is not finite."""
    bound: float = 0.0
    """The largest that the class allows an element."""
    small_parts: bool = False
    """The class is `relaxed` for small parts of an answer alone."""

    def add(self, case: Case, answer: Answer, *, relaxed: bool) -> None:
        """One more answer; `relaxed`: the task allows this class."""
        errors = case.errors(answer)
        passed = case.class_when_timed(errors, self.precision_class, relaxed=relaxed)
        if not case.counts(answer, errors, passed, self.precision_class):
            return
        bounds, worst = case.bounds(passed or self.precision_class), max(errors.worst, default=0.0)
        self.compared, self.bound = self.compared + 1, max(self.bound, reported(bounds))
        if passed is None:
            kind = case.plan.kind
            form = f" with inputs as in the trial `{kind}`" if kind not in (_ORDINARY.kind, ROW.kind) else ""
            form = " whose inputs were exchanged for others" if case.plan is _EXCHANGED else form
            self.wrong = f"a timed call{form} errs by {worst:.2e} where {max(bounds):.2e} is allowed"
            return
        self.small_parts |= passed != self.precision_class and case.hides_small_parts(errors, passed)
        self.precision_class = passed
        self.error = None if self.error is None or not math.isfinite(worst) else max(self.error, worst)


def kept_calls(session: Session) -> list[Kept]:
    """What the session kept of timed calls, the quickest of each clock first, then their next."""
    ranks = itertools.zip_longest(*session.quickest.values())
    quickest = [each[1] for rank in ranks for each in rank if each is not None]
    return [*quickest, *(each for each in session.kept if not any(each is one for one in quickest))]


def verify_timed(reference: Reference, facts: Facts, session: Session, precision_class: str) -> dict[str, Any]:
    """Compare what the session kept with truth; nothing is kept afterwards. `precision_class`: that of the candidate so
    far, which may be a lesser one afterwards."""
    kept, exchanged = kept_calls(session), session.exchanged
    in_a_row = [call for _, call in session.back_to_back if _is_known(reference, facts, session)]
    session.kept, session.quickest, session.kept_seen, session.back_to_back, session.exchanged = [], {}, 0, [], []
    strange, session.strange = session.strange, {}
    changed, session.changed_input = session.changed_input, None
    found = TimedAnswers(precision_class)
    if changed is not None:
        found.wrong = f"input {changed} is changed by a timed call; the reference leaves it alone"
    else:
        found.wrong = _wrong_form(reference, session.timed_form)
    if found.wrong is None:
        kept = [*in_a_row[:1], *kept, *in_a_row[1:]]
        _compare_kept(reference, facts, session, exchanged, kept, strange, found)
    reused = "reused" in session.timed_form and not session.reused
    return {**dataclasses.asdict(found), "reused": reused, "relaid": "relaid" in session.timed_form}


def _is_known(reference: Reference, facts: Facts, session: Session) -> bool:
    """Whether the last answer of a row follows from its inputs: not from state that only the candidate knows, nor from
    choices or random numbers of all calls before."""
    has_state = session.mapped and not (session.unpartnered or session.fixed)
    return not reference.changed_state or (has_state and not facts.random and not facts.jumpy)


def _wrong_form(reference: Reference, form: Collection[str]) -> str | None:
    """What is wrong with whose memory the answers of timed calls are."""
    meant = {
        "alias": (reference.aliases, "an output of a timed call is a view of an input; the reference's is not"),
        "overlaps": (
            reference.overlaps,
            "an output of a timed call is expanded: elements share memory; the reference's does not",
        ),
        "exposed": (
            reference.exposes,
            "an output of a timed call is a parameter or buffer of the module; the reference's is not",
        ),
        "shared": (reference.shares, "two outputs of a timed call are one tensor; the reference's are not"),
    }
    for name, (places, text) in meant.items():
        told = {each for each in form if isinstance(each, str) and each.startswith(f"{name} ")}
        if told - {f"{name} {place}" for place in places}:
            return text
    return None


def _compare_kept(
    reference: Reference,
    facts: Facts,
    session: Session,
    exchanged: list[Kept],
    kept: list[Kept],
    strange: dict[Plan, Kept],
    found: TimedAnswers,
) -> None:
    if facts.random:
        wrong = (look(reference, session, kept, VERIFY_S) for look in (wrong_numbers, wrong_at_random))
        found.compared, found.wrong = len(kept), next(filter(None, wrong), None)
        return
    # In no order of time: with slow calls a few are compared, and these must not be the earliest.
    others = ENTROPY.sample(kept[FIRST:], len(kept[FIRST:]))
    ordinary = [(_ORDINARY, each) for each in (*kept[:FIRST], *others)]
    shown = list(strange.items())
    uncounted = ENTROPY.sample(shown, len(shown))
    behind = [(_EXCHANGED, each) for each in exchanged]
    # Ordinary ones first, by which the class goes: not all that is put to one is put to another.
    _compare(reference, facts, session, [*behind, *ordinary[:FIRST], *uncounted, *ordinary[FIRST:]], found)


def _compare(
    reference: Reference, facts: Facts, session: Session, kept: list[tuple[Plan, Kept]], found: TimedAnswers
) -> None:
    at_least = VERIFY_AT_LEAST + sum(plan is _EXCHANGED for plan, _ in kept)
    begin = time.monotonic()
    for plan, call in kept:
        if found.wrong or (found.compared >= at_least and time.monotonic() - begin > VERIFY_S):
            break
        if plan in RANGE_PLANS and found.precision_class in OUT_OF_RANGE:
            continue
        weights = {**session.weights, **call.state}
        of, put = reference, plan
        if call.earlier is not None:
            of, put = reference.after(call.earlier), ROW
        case = Case.where_stood(of, put, call.inputs, weights, facts.jumpy)
        if case is None or (put is not _ORDINARY and not case.sound):  # the reference stood others of this form
            continue
        session.compared.add(plan)
        if call.structure != case.noise.structure:
            found.wrong = f"the outputs of a timed call are nested as {call.structure}, not {case.noise.structure}"[
                :300
            ]
            break
        answer = dataclasses.replace(case.noise, tensors=call.tensors[: len(case.noise.tensors)])
        got = without_unpartnered(answer, case.noise, session.unpartnered if call.earlier is None else set())
        found.add(case, got, relaxed=facts.relaxed_allowed)
