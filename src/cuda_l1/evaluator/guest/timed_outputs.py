"""The outputs kept from timed calls: right in the trials and wrong when timed is wrong."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Collection
from typing import Any

from .audit import Facts
from .case import Case
from .check import reported
from .driving import Kept
from .entropy import ENTROPY
from .form import without_unpartnered
from .plans import OUT_OF_RANGE, RANGE_PLANS, ROW, Plan
from .random_tasks import wrong_at_random
from .reference import Reference
from .session import Session

VERIFY_AT_LEAST, VERIFY_S = 3, 2.0
"""Of the outputs kept from timed calls at least so many are compared, and more within this time."""
FIRST = 2
"""Ordinary ones that always are: the quickest on either clock, or one of a run of calls and the quickest."""
_ORDINARY, _EXCHANGED = Plan("timed"), Plan("timed")
"""Told apart by identity: their inputs are alike."""


def kept_calls(session: Session) -> list[Kept]:
    """What the session kept of timed calls, the quickest of each clock first, then their next."""
    ranks = itertools.zip_longest(*session.quickest.values())
    quickest = [each[1] for rank in ranks for each in rank if each is not None]
    return [*quickest, *(each for each in session.kept if not any(each is one for one in quickest))]


def verify_timed(reference: Reference, facts: Facts, session: Session, precision_class: str) -> dict[str, Any]:
    """Compare what the session kept with truth, under the class that the trials gave; nothing is kept afterwards."""
    kept, exchanged = kept_calls(session), session.exchanged
    in_a_row = [call for _, call in session.back_to_back if _is_known(reference, facts, session)]
    session.kept, session.quickest, session.kept_seen, session.back_to_back, session.exchanged = [], {}, 0, [], []
    strange, session.strange = session.strange, {}
    changed, session.changed_input = session.changed_input, None
    if changed is not None:
        text = f"input {changed} is changed by a timed call; the reference leaves it alone"
        return {"compared": 0, "wrong": text, "error": None}
    if wrong := _wrong_form(reference, session.timed_form):
        return {"compared": 0, "wrong": wrong, "error": None}
    kept = [*in_a_row[:1], *kept, *in_a_row[1:]]
    found = _compared(reference, facts, session, exchanged, kept, strange, precision_class)
    reused = "reused" in session.timed_form and not session.reused
    return {**found, "reused": reused, "relaid": "relaid" in session.timed_form}


def _is_known(reference: Reference, facts: Facts, session: Session) -> bool:
    """Whether the last answer of a row follows from its inputs: not from state that only the candidate knows, nor from
    choices or random numbers of all calls before."""
    has_state = session.mapped and not (session.unpartnered or session.fixed)
    return not reference.changed_state or (has_state and not facts.random and not facts.jumpy)


def _wrong_form(reference: Reference, form: Collection[str]) -> str | None:
    """What is wrong with whose memory the answers of timed calls are."""
    if "alias" in form and not reference.aliases:
        return "an output of a timed call is a view of an input; the reference's is not"
    if "overlaps" in form and not reference.overlaps:
        return "an output of a timed call is expanded: elements share memory; the reference's does not"
    if "exposed" in form and not reference.exposes:
        return "an output of a timed call is a parameter or buffer of the module; the reference's is not"
    if "shared" in form and not reference.shares:
        return "two outputs of a timed call are one tensor; the reference's are not"
    return None


def _compared(
    reference: Reference,
    facts: Facts,
    session: Session,
    exchanged: list[Kept],
    kept: list[Kept],
    strange: dict[Plan, Kept],
    precision_class: str,
) -> dict[str, Any]:
    if facts.random:
        wrong = wrong_at_random(reference, session, kept, VERIFY_S)
        return {"compared": len(kept), "wrong": wrong, "error": 0.0, "bound": 0.0}
    # In no order of time: with slow calls a few are compared, and these must not be the earliest.
    others = ENTROPY.sample(kept[FIRST:], len(kept[FIRST:]))
    ordinary = [(_ORDINARY, each) for each in (*kept[:FIRST], *others)]
    in_range = precision_class not in OUT_OF_RANGE
    shown = [(plan, call) for plan, call in strange.items() if in_range or plan not in RANGE_PLANS]
    uncounted = ENTROPY.sample(shown, len(shown))
    behind = [(_EXCHANGED, each) for each in exchanged]
    compared = [*behind, *uncounted[:1], *ordinary[:FIRST], *uncounted[1:], *ordinary[FIRST:]]
    return _compare(reference, facts, session, compared, precision_class)


def _compare(
    reference: Reference, facts: Facts, session: Session, kept: list[tuple[Plan, Kept]], precision_class: str
) -> dict[str, Any]:
    worst, bound, compared = 0.0, 0.0, 0
    at_least = VERIFY_AT_LEAST + sum(plan is _EXCHANGED for plan, _ in kept)
    begin = time.monotonic()
    for plan, call in kept:
        if compared >= at_least and time.monotonic() - begin > VERIFY_S:
            break
        weights = {**session.weights, **call.state}
        of, put = reference, plan
        if call.earlier is not None:
            of, put = reference.after(call.earlier), ROW
        case = Case.where_stood(of, put, call.inputs, weights, facts.jumpy)
        if case is None or (put is not _ORDINARY and not case.sound):  # the reference stood others of this form
            continue
        compared += 1
        session.compared.add(plan)
        answer = dataclasses.replace(case.noise, tensors=call.tensors[: len(case.noise.tensors)])
        got = without_unpartnered(answer, case.noise, session.unpartnered if call.earlier is None else set())
        errors, bounds = case.errors(got), case.bounds(precision_class)
        worst, bound = max(worst, *errors.worst), max(bound, reported(bounds))
        if not case.passes_when_timed(errors, precision_class, relaxed=facts.relaxed_allowed):
            form = "" if plan.kind == _ORDINARY.kind else f" with inputs as in the trial `{plan.kind}`"
            form = " whose inputs changed behind the shut gate" if plan is _EXCHANGED else form
            wrong = f"a timed call{form} errs by {max(errors.worst):.2e} where {max(bounds):.2e} is allowed"
            return {"compared": compared, "wrong": wrong, "error": None, "bound": bound}
    return {"compared": compared, "wrong": None, "error": worst, "bound": bound}
