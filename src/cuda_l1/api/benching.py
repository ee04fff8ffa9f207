"""`bench`: a verdict for every baseline of every task of a suite, with the archive as the only memory of verdicts.

Tasks go in groups, one for each evaluator, which keeps its judge from one baseline to the next. Eager comes first, and
says whether the task can be judged; then the baselines that compile, as many at once as there are evaluators, so that
timing, which has the device alone, waits for few of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from cuda_l1.api.bench_run import BenchRun
from cuda_l1.api.fitting import Fitted, Fitting
from cuda_l1.api.pool import EvaluatorPool, Job
from cuda_l1.archive import Archive
from cuda_l1.config import FINAL, SCREEN, BenchSettings, Protocol
from cuda_l1.errors import CudaL1Error, InfrastructureError, TaskError
from cuda_l1.evaluator import Evaluator
from cuda_l1.proposers.baselines import named
from cuda_l1.search.bench import TaskRow, attempt, row_of, skipped_row
from cuda_l1.search.verdicts import known
from cuda_l1.types import Candidate, Outcome, Record, Task

T = TypeVar("T")
W = TypeVar("W")

FAULTS = 3
"""So many faults of the machine in a row end a suite: with a broken device the rest would fail as well."""
_COMPILING = ("torch.compile", "aot_compile")


class Item(NamedTuple):
    """A verdict that is wanted."""

    task: Task
    candidate: Candidate


class Told(NamedTuple):
    """A verdict that is there, for people."""

    item: Item
    result: Record | CudaL1Error
    is_known: bool
    """From the archive, and paid for before."""


Found = dict[tuple[str, str], Record | CudaL1Error]
"""What came of a task's baseline, by the ids of both."""


class Bench:
    """One suite on one device."""

    def __init__(
        self,
        tasks: Sequence[Task],
        settings: BenchSettings,
        *,
        archive: Archive,
        pool: EvaluatorPool,
        run: BenchRun,
        on_verdict: Callable[[Told], None] = lambda told: None,
    ) -> None:
        self._tasks, self._settings = tasks, settings
        self._archive, self._pool, self._run = archive, pool, run
        self._on_verdict = on_verdict
        self._fitting = Fitting(settings, run)
        self._protocol: Protocol = protocol_of(settings)
        self._faults = 0

    def rows(self) -> Iterator[tuple[Task, TaskRow]]:
        """Each task as it was judged and its row, in order; what the row rests on is in the archive by then.

        Raises InfrastructureError after three faults of the machine in a row, ArchiveError.
        """
        size = self._pool.size
        for begin in range(0, len(self._tasks), size):
            yield from self._group(self._tasks[begin : begin + size])

    def _group(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, TaskRow]]:
        fits = dict(self._in_parallel([(task, task, False) for task in tasks], self._fit))
        fitted = [fits[task] for task in tasks]
        found: Found = {}
        usable = [fit.task for fit in fitted if not (fit.skipped or self._run.reason_to_skip(fit.task))]
        self._judge([Item(task, self._baselines(task)[0]) for task in usable], found)
        judged = [task for task in usable if _can_be_judged(found[task.sha, self._baselines(task)[0].id])]
        self._judge([Item(task, baseline) for task in judged for baseline in self._baselines(task)[1:]], found)
        for task, fit in zip(tasks, fitted, strict=True):
            row = self._row(fit, found)
            if fit.task != task:  # at other sizes: what was said of its own is no longer so
                self._run.left_out(task, None)
            yield fit.task, row

    def _row(self, fit: Fitted, found: Found) -> TaskRow:
        task, (eager, *others) = fit.task, self._baselines(fit.task)
        known_of_eager = found.get((task.sha, eager.id))
        failed = None if known_of_eager is None or _can_be_judged(known_of_eager) else _why_not(known_of_eager)
        reason = fit.skipped or self._run.reason_to_skip(task) or failed
        if reason is not None:
            told = reason.removeprefix(f"{task.id}: ")
            self._run.left_out(task, told)
            return skipped_row(task, told)
        self._run.judged(task)
        return row_of(
            task,
            [(baseline, found.get((task.sha, baseline.id))) for baseline in (eager, *others)],
            precision=self._settings.precision,
            clock=self._settings.clock,
            scaled=fit.scaled,
        )

    def _fit(self, evaluator: Evaluator, task: Task) -> Fitted:
        return self._fitting.of(evaluator, task, is_known=self._known(self._baselines(task)[0]) is not None)

    def _judge(self, items: Sequence[Item], found: Found) -> None:
        """Adds what the archive holds to `found`, then what has to be measured, as it becomes known."""
        waiting = []
        for item in {(item.task.sha, item.candidate.id): item for item in items}.values():
            stored = self._known(item.candidate)
            if stored is None:
                waiting.append((item, item.task, any(word in item.candidate.source for word in _COMPILING)))
            else:
                self._take(Told(item, stored, True), found)
        for item, result in self._in_parallel(waiting, self._attempt):
            self._take(Told(item, result, False), found)

    def _take(self, told: Told, found: Found) -> None:
        task, candidate = told.item
        found[task.sha, candidate.id] = told.result
        self._on_verdict(told)
        if isinstance(told.result, InfrastructureError):
            self._faults += 1
            if self._faults >= FAULTS:
                raise told.result
        elif not told.is_known:
            self._faults = 0
        if isinstance(told.result, TaskError) and candidate.label == "eager" and "memory" not in str(told.result):
            self._run.skip(task, str(told.result))  # what memory there is may be another the next time

    def _attempt(self, evaluator: Evaluator, item: Item) -> Record | CudaL1Error:
        return attempt(
            item.task,
            item.candidate,
            protocol=self._protocol,
            archive=self._archive,
            evaluator=evaluator,
            run=self._run.name,
        )

    def _baselines(self, task: Task) -> list[Candidate]:
        return named(task, self._settings.device, self._settings.baselines)

    def _known(self, candidate: Candidate) -> Record | None:
        return known(candidate, self._protocol, self._archive, self._pool.first)

    def _in_parallel(
        self, work: Sequence[tuple[W, Task, bool]], do: Callable[[Evaluator, W], T]
    ) -> Iterator[tuple[W, T]]:
        """(work, what `do` made of it) as it is done; given are the work, its task, and whether it goes first."""
        jobs = [Job(item, task.sha, is_slow_to_build=is_slow) for item, task, is_slow in work]
        for job, result in self._pool.run(jobs, do):
            yield job.work, result


def _can_be_judged(eager: Record | CudaL1Error) -> bool:
    """A module that does not even build is no task, and what a baseline makes of it says nothing."""
    return isinstance(eager, Record) and eager.evaluation.outcome is not Outcome.BUILD_FAILED


def _why_not(eager: Record | CudaL1Error) -> str:
    return f"does not build: {eager.evaluation.detail}" if isinstance(eager, Record) else str(eager)


def protocol_of(settings: BenchSettings) -> Protocol:
    """How the baselines are judged."""
    final = FINAL.model_copy(update={"budget_s": settings.final_budget_s})
    return final if settings.protocol == "final" else SCREEN
