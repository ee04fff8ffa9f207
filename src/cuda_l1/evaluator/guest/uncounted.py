"""Calls among the timed ones that are no samples: their inputs have the forms that trials have.

A candidate that counts its calls, or knows that it is timed, would else have to be right for ordinary inputs only. The
inputs are made before the calls begin, so that laying them takes no longer than laying any others.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from random import SystemRandom

import torch

from . import trials
from .classes import Case
from .reference import BadTask, Reference
from .session import Session, total_bytes
from .trials import Inputs, Plan

FLIPPED, WIDENED = (-1.0, -4.0), (4.0,)
MADE_BYTES, MADE_S, AT_LEAST = 1 << 30, 1.0, 2
"""Of such inputs for one runner: so many, however large and slow they are, and more within these."""
_random = SystemRandom()


def prepare(reference: Reference, session: Session, sample: Inputs) -> None:
    """Make inputs of the forms that the reference stands, in random order, for a runner's timed calls."""
    session.factors = _strange_factors(reference, sample)
    forms: dict[Plan, trials.Make] = {_multiplied(f): partial(trials.stress, factor=f) for f in session.factors}
    forms.update(reference.forms)
    session.uncounted, size, begin = [], 0, time.monotonic()
    for plan in _random.sample(list(forms), len(forms)):
        if len(session.uncounted) >= AT_LEAST and (size > MADE_BYTES or time.monotonic() - begin > MADE_S):
            break
        inputs, found = forms[plan](reference.draw())
        if found and session.fits(inputs) and _answers(reference, inputs, session.weights):
            session.uncounted.append((plan, inputs))
            size += total_bytes(inputs)


def take(reference: Reference, session: Session, count: int) -> list[tuple[Plan, Inputs]]:
    """Inputs for the next `count` calls; when those of other forms are used up, multiplied ones. Fewer where the
    reference stands none."""
    taken, session.uncounted = session.uncounted[:count], session.uncounted[count:]
    while len(taken) < count and session.factors:
        factor = _random.choice(session.factors)
        taken.append((_multiplied(factor), trials.stress(reference.draw(), factor)[0]))
    return taken


def _multiplied(factor: float) -> Plan:
    return Plan("timed", factor=factor)


def _answers(reference: Reference, inputs: Inputs, weights: Mapping[str, torch.Tensor]) -> bool:
    """Whether the reference raises nothing for these inputs: who raises, too, is not to blame."""
    try:
        reference.call(inputs, weights, "shipped")
    except BadTask:
        return False
    return True


def _strange_factors(reference: Reference, inputs: Inputs) -> tuple[float, ...]:
    """By which inputs are multiplied: with other signs where the reference stands that, else in another range only."""
    flipped = tuple(factor for factor in FLIPPED if _stands(reference, inputs, factor))
    return flipped or tuple(factor for factor in WIDENED if _stands(reference, inputs, factor))


def _stands(reference: Reference, inputs: Inputs, factor: float) -> bool:
    """Asked once a task: truth in float64 is dear."""
    if factor not in reference.stands:
        changed, touched = trials.stress(inputs, factor)
        case = Case.where_stood(reference, _multiplied(factor), changed, reference.public, False) if touched else None
        reference.stands[factor] = case is not None and case.sound
    return reference.stands[factor]
