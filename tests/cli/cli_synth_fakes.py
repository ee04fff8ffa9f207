"""A pool whose evaluators call every fourth task unsound, and which may be interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from cuda_l1.api.pool import Job
from cuda_l1.tasks.synth import SyntheticTask
from cuda_l1.types import Task, TaskAudit


class FakeEvaluator:
    def audit(self, task: Task) -> TaskAudit:
        number = int(task.name.partition("/")[2].partition("_")[0])
        return TaskAudit(
            task_id=task.id, task_class="fp32", mode="train", flags=("degenerate",) if number % 4 == 0 else ()
        )


class FakePool:
    audited: ClassVar[list[int]] = []
    dies_after: ClassVar[int | None] = None

    def __init__(self, settings: object) -> None:
        pass

    def run(
        self, jobs: Sequence[Job[SyntheticTask]], do: Callable[[Any, SyntheticTask], Any]
    ) -> Iterator[tuple[Job[SyntheticTask], Any]]:
        for job in jobs:
            if len(self.audited) == self.dies_after:
                raise KeyboardInterrupt
            self.audited.append(job.work.number)
            yield job, do(FakeEvaluator(), job.work)

    def __exit__(self, *_: object) -> None:
        pass
