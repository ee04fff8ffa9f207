"""Verdicts on a machine that others use: what they disturbed is measured once more."""

from __future__ import annotations

from functools import partial
from typing import Any

from cuda_l1.search.verdicts import verdict
from cuda_l1.types import Candidate, Evaluation, Record, Task

BUSY = "busy-machine"
"""The finding that others were computing."""


def is_disturbed(evaluation: Evaluation) -> bool:
    """Whether a result does not count only since others were computing while it was timed."""
    return {finding.check for finding in evaluation.disqualifying} == {BUSY}


def undisturbed(task: Task, candidate: Candidate, **given: Any) -> Record:
    """`verdict` with what is `given`; a second one, which stands, where the first or the stored one is disturbed."""
    ask = partial(verdict, task, candidate, **given)
    record = ask()
    return ask(fresh=True) if is_disturbed(record.evaluation) else record
