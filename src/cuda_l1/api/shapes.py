"""A candidate at other sizes than its task's own: the reference at each size is the truth there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from cuda_l1.api.pool import EvaluatorPool, Job
from cuda_l1.config import Precision
from cuda_l1.errors import TaskError
from cuda_l1.evaluator import Evaluator
from cuda_l1.report.shapes import SizeResult
from cuda_l1.tasks.sizes import Size, variants
from cuda_l1.types import Candidate, Task, Verification

_Try = Callable[[Task, Candidate], Verification]


class Tried(NamedTuple):
    """One answer: the candidate's place among those given, and what came of it at a size."""

    place: int
    result: SizeResult


def verify_sizes(
    task: Task, candidates: Sequence[Candidate], sizes: Sequence[Size], *, pool: EvaluatorPool, precision: Precision
) -> Iterator[Tried]:
    """Every candidate at every size, size by size, as they become known. Nothing is timed, nothing is recorded.

    Raises InfrastructureError.
    """

    def do(evaluator: Evaluator, size: Size) -> list[SizeResult]:
        return list(_at(task, candidates, size, evaluator.verify, precision))

    jobs = [Job(size, repr(size), f"{task.name} at {size}") for size in sizes]
    for _, results in pool.run(jobs, do):
        for place, result in enumerate(results):
            yield Tried(place, result)


def _at(
    task: Task, candidates: Sequence[Candidate], size: Size, verify: _Try, precision: Precision
) -> Iterator[SizeResult]:
    """All candidates at one size; where the text leaves open what a number means, the first reading that works."""
    readings, refusal = variants(task, size), ""
    for candidate in candidates:
        found = None
        while readings and found is None:
            try:
                found = verify(readings[0], candidate)
            except TaskError as error:
                refusal = refusal or str(error).removeprefix(f"{readings[0].id}: ")
                del readings[0]
        yield SizeResult(size, found, refusal, precision)
