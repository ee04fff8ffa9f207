"""Calls among the timed ones that are no samples: their inputs have the forms that trials have.

A candidate that counts its calls, or knows that it is timed, would else have to be right for ordinary inputs only. The
inputs are made before a block of calls begins, so that laying them takes no longer than laying any others; forms come
again once all have had their turn, so that none is over for good.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import torch

from .case import Case
from .drawing import Inputs
from .entropy import ENTROPY
from .input_forms import Make, stress
from .plans import Plan
from .reference import BadTask, Reference
from .session import Session

FLIPPED, WIDENED = (-1.0, -4.0), (4.0,)
"""What inputs are multiplied by where the reference stands other signs, and where it does not."""
TRIES = 3
"""How often inputs are made for one call before none are found that the reference answers."""


def prepare(reference: Reference, session: Session, sample: Inputs) -> None:
    """Learn by what a runner's inputs may be multiplied, and begin with all forms."""
    session.factors, session.forms = _strange_factors(reference, sample), []


def take(reference: Reference, session: Session, count: int) -> list[tuple[Plan, Inputs]]:
    """Inputs for the next `count` calls that are no samples, of forms in random order. Fewer where the reference stands
    none."""
    forms = forms_of(reference, session)
    taken: list[tuple[Plan, Inputs]] = []
    for _ in range(TRIES * count if forms else 0):
        session.forms = session.forms or ENTROPY.sample(list(forms), len(forms))
        plan = session.forms.pop()
        inputs, found = forms[plan](reference.draw())
        fitted = session.fitted(inputs) if found else None
        if fitted is not None and answers(reference, fitted, session.weights):
            taken.append((plan, fitted))
        if len(taken) == count:
            break
    return taken


def forms_of(reference: Reference, session: Session) -> dict[Plan, Make]:
    """What makes inputs of all forms that the reference stands, by the plans that they are known under."""
    return {_multiplied(f): partial(stress, factor=f) for f in session.factors} | reference.forms


def _multiplied(factor: float) -> Plan:
    return Plan("timed", factor=factor)


def answers(reference: Reference, inputs: Inputs, weights: Mapping[str, torch.Tensor]) -> bool:
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
        changed, touched = stress(inputs, factor)
        case = Case.where_stood(reference, _multiplied(factor), changed, reference.public, False) if touched else None
        reference.stands[factor] = case is not None and case.sound
    return reference.stands[factor]
