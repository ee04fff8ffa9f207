"""The time that moving a task's inputs and outputs takes on a GPU: a mark for searches, prompts and reviewers."""

from __future__ import annotations

from cuda_l1.evaluator import Evaluator
from cuda_l1.types import Clock, Task


def roofline_us(task: Task, clock: Clock | None, evaluator: Evaluator) -> float | None:
    """Microseconds of device time that moving all inputs and outputs takes; None on a CPU, whose caches hold them, and
    where what a caller waits for is the objective. Measured behind the wall: raises as `Evaluator.audit` does."""
    if evaluator.environment.device == "cpu" or clock == "call":
        return None
    return evaluator.audit(task).roofline_us
