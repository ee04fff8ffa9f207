"""The outputs kept from timed calls: right in the trials and wrong when timed is wrong."""

from __future__ import annotations

import dataclasses
import time
from random import SystemRandom
from typing import Any

from .audit import Facts
from .check import reported
from .classes import Case
from .form import without_unpartnered
from .random_tasks import wrong_at_random
from .reference import Reference
from .session import Session
from .trials import Plan, secret_seed

VERIFY_AT_LEAST, VERIFY_S = 3, 2.0
"""Of the outputs kept from timed calls at least so many are compared, and more within this time."""
_random = SystemRandom()


def verify_timed(reference: Reference, facts: Facts, session: Session, precision_class: str) -> dict[str, Any]:
    """Compare what the session kept with truth, under the class that the trials gave; nothing is kept afterwards."""
    kept, session.kept, session.kept_seen = session.kept, [], 0
    strange, session.strange = session.strange, {}
    changed, session.changed_input = session.changed_input, None
    if changed is not None:
        text = f"input {changed} is changed by a timed call; the reference leaves it alone"
        return {"compared": 0, "wrong": text, "error": None}
    if facts.random:
        wrong = wrong_at_random(reference, session, kept, VERIFY_S)
        return {"compared": len(kept), "wrong": wrong, "error": 0.0, "bound": 0.0}
    # In no order of time: with slow calls a few are compared, and these must not be the earliest.
    ordinary = [(1.0, *each) for each in _random.sample(kept, len(kept))]
    multiplied = [(factor, *each) for factor, each in strange.items()]
    compared = [*multiplied[:1], *ordinary[:1], *multiplied[1:], *ordinary[1:]]
    return _compare(reference, facts, session, compared, precision_class)


def _compare(
    reference: Reference, facts: Facts, session: Session, kept: list[Any], precision_class: str
) -> dict[str, Any]:
    worst, bound, compared = 0.0, 0.0, 0
    begin = time.monotonic()
    for factor, inputs, tensors in kept:
        if compared >= VERIFY_AT_LEAST and time.monotonic() - begin > VERIFY_S:
            break
        case = Case(reference, Plan("timed", factor=factor), inputs, reference.public, secret_seed(), facts.jumpy)
        if factor != 1.0 and not case.sound:  # the reference stood other inputs times this
            continue
        compared += 1
        got = without_unpartnered(dataclasses.replace(case.noise, tensors=tensors), case.noise, session.unpartnered)
        errors, bounds = case.errors(got), case.bounds(precision_class)
        worst, bound = max(worst, *errors.worst), max(bound, reported(bounds))
        if not case.passes(errors, precision_class):
            wrong = f"a timed call errs by {max(errors.worst):.2e} where {max(bounds):.2e} is allowed"
            return {"compared": compared, "wrong": wrong, "error": None, "bound": bound}
    return {"compared": compared, "wrong": None, "error": worst, "bound": bound}
