"""`bench`: a verdict for every baseline of every task of a suite, with the archive as the only memory of verdicts.

A task begins with an evaluator, which keeps its judge from one baseline to the next. Eager comes first, and says
whether the task can be judged; then the baselines that compile, then the others. Nobody waits for the end of another
task: who is done with one begins the next, and helps with the others' where none is left to begin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from cuda_l1.api.bench_run import BenchRun
from cuda_l1.api.fitting import Fitted, Fitting
from cuda_l1.api.pool import FAULTS, EvaluatorPool, Job
from cuda_l1.archive import Archive
from cuda_l1.config import FINAL, SCREEN, BenchSettings, Protocol
from cuda_l1.errors import CudaL1Error, InfrastructureError, NoRoomError, TaskError
from cuda_l1.evaluator import Evaluator
from cuda_l1.proposers.baselines import named
from cuda_l1.search.bench import TaskRow, attempt, row_of, skipped_row
from cuda_l1.search.credits import is_credited
from cuda_l1.search.verdicts import known
from cuda_l1.types import Candidate, Environment, Evaluation, Outcome, Record, Task

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


class Step(NamedTuple):
    """One thing to do about a task."""

    task: Task
    """As the suite has it."""
    item: Item | None = None
    """A verdict on the task as it fits; None: see whether it does."""
    is_alone: bool = False
    """Once more, with no other evaluator on the device."""

    @property
    def name(self) -> str:
        """What people are told that it is."""
        return f"{self.task.name} {self.item.candidate.label}" if self.item else f"the size of {self.task.name}"


Found = dict[str, Record | CudaL1Error]
"""What came of a task's baselines, by their ids."""


@dataclass
class Progress:
    """How far a task is."""

    begun: int = 1
    """Steps, those that are done among them; the pool's threads count what follows a step before they hand its result
    over, so that a task is done when the caller has taken so many."""
    taken: int = 0
    known: list[Told] = field(default_factory=list)
    """Verdicts from the archive of which the caller has not heard."""
    fit: Fitted | None = None
    found: Found = field(default_factory=dict)

    @property
    def is_under_way(self) -> bool:
        """Whether results are awaited."""
        return self.taken < self.begun


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

        Whoever searches between two rows (`optimize`) has the device alone: tasks are then begun in groups of as many
        as there are evaluators. Raises InfrastructureError after three faults of the machine in a row, ArchiveError.
        """
        self._run.asked(self._tasks)
        size = self._pool.size if self._settings.optimize else max(1, len(self._tasks))
        for begin in range(0, len(self._tasks), size):
            yield from self._rows_of(self._tasks[begin : begin + size])

    def _rows_of(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, TaskRow]]:
        progress = {task.sha: Progress() for task in tasks}
        steps = [Step(task) for task in {task.sha: task for task in tasks}.values()]
        jobs = [Job(step, step.task.sha, step.name) for step in steps]
        results = self._pool.run(jobs, self._do, partial(self._then, progress))
        for task in tasks:
            mine = progress[task.sha]
            while mine.is_under_way:
                job, result = next(results)
                self._take(job.work, result, progress[job.work.task.sha])
            yield self._row_of(task, mine)
        for job, result in results:  # there is none: it ends what the pool began
            self._take(job.work, result, progress[job.work.task.sha])

    def _do(self, evaluator: Evaluator, step: Step) -> Fitted | Record | CudaL1Error:
        if step.item is None:
            is_known = self._known(self._baselines(step.task)[0]) is not None
            return self._fitting.of(evaluator, step.task, is_known=is_known)
        return attempt(
            step.item.task,
            step.item.candidate,
            protocol=self._protocol,
            archive=self._archive,
            evaluator=_BesideOthers(evaluator) if self._has_company(step) else evaluator,
            run=self._run.name,
        )

    def _has_company(self, step: Step) -> bool:
        """Whether other evaluators hold memory of the device meanwhile, also while they wait."""
        return self._pool.size > 1 and not step.is_alone

    def _then(
        self, progress: Mapping[str, Progress], step: Step, result: Fitted | Record | CudaL1Error
    ) -> list[Job[Step]]:
        """What there is to do about a task after that. Called in the pool's threads, for one task by one of them at a
        time as long as anything can follow."""
        wanted = partial(self._wanted, progress[step.task.sha], step.task)
        if step.item is not None:
            if isinstance(result, NoRoomError) and self._has_company(step):
                progress[step.task.sha].begun += 1
                return [Job(step._replace(is_alone=True), step.task.sha, step.name, needs_room=True)]
            eager, *others = self._baselines(step.item.task)
            if step.item.candidate.id != eager.id:
                return []
            return wanted(step.item.task, others, is_alone=step.is_alone) if _can_be_judged(result) else []
        assert isinstance(result, Fitted), "what a step without a candidate finds out"
        task = result.task
        if result.skipped or self._run.reason_to_skip(task):
            return []
        eager, *others = self._baselines(task)
        stored = self._known(eager)
        return [*wanted(task, [eager]), *(wanted(task, others) if stored and _can_be_judged(stored) else [])]

    def _wanted(
        self, mine: Progress, of: Task, task: Task, candidates: Sequence[Candidate], *, is_alone: bool = False
    ) -> list[Job[Step]]:
        """A job for each that the archive does not hold, those first that compile; what it holds is noted. `is_alone`:
        as eager was judged, with no other evaluator on the device."""
        jobs = []
        for candidate in {each.id: each for each in candidates}.values():
            item, stored = Item(task, candidate), self._known(candidate)
            if stored is not None:
                mine.known.append(Told(item, stored, True))
            else:
                is_slow = any(word in candidate.source for word in _COMPILING)
                step = Step(of, item, is_alone)
                jobs.append(Job(step, of.sha, step.name, is_slow_to_build=is_slow, needs_room=is_alone))
        mine.begun += len(jobs)
        return sorted(jobs, key=lambda job: not job.is_slow_to_build)

    def _take(self, step: Step, result: Fitted | Record | CudaL1Error, mine: Progress) -> None:
        """In the caller's thread, with what was known of the task by then."""
        mine.taken += 1
        while mine.known:
            self._tell(mine.known.pop(0), mine)
        if isinstance(result, Fitted):
            mine.fit = result
        elif step.item is not None:
            self._tell(Told(step.item, result, False), mine)

    def _row_of(self, task: Task, mine: Progress) -> tuple[Task, TaskRow]:
        assert mine.fit is not None, "the first step of every task"
        fit = mine.fit if mine.fit.task.sha != task.sha else mine.fit._replace(task=task)
        row = self._row(fit, mine.found)
        if fit.task != task:  # at other sizes: what was said of its own is no longer so
            self._run.left_out(task, None)
        return fit.task, row

    def _row(self, fit: Fitted, found: Found) -> TaskRow:
        task, (eager, *others) = fit.task, self._baselines(fit.task)
        known_of_eager = found.get(eager.id)
        failed = None if known_of_eager is None or _can_be_judged(known_of_eager) else _why_not(known_of_eager)
        reason = fit.skipped or self._run.reason_to_skip(task) or failed
        if reason is not None:
            told = reason.removeprefix(f"{task.id}: ")
            self._run.left_out(task, told)
            return skipped_row(task, told)
        self._run.judged(task)
        return row_of(
            task,
            [(baseline, found.get(baseline.id)) for baseline in (eager, *others)],
            precision=self._settings.precision,
            clock=self._settings.clock,
            scaled=fit.scaled,
        )

    def _tell(self, told: Told, mine: Progress) -> None:
        task, candidate = told.item
        mine.found[candidate.id] = told.result
        self._on_verdict(told)
        if isinstance(told.result, InfrastructureError):
            self._faults += 1
            if self._faults >= FAULTS:
                raise told.result
        elif not told.is_known:
            self._faults = 0
        is_lasting = isinstance(told.result, TaskError) and not isinstance(told.result, NoRoomError)
        if is_lasting and candidate.label == "eager" and "memory" not in str(told.result):
            self._run.skip(task, str(told.result))  # what memory there is may be another the next time

    def _baselines(self, task: Task) -> list[Candidate]:
        return named(task, self._settings.device, self._settings.baselines)

    def _known(self, candidate: Candidate) -> Record | None:
        record = known(candidate, self._protocol, self._archive, self._pool.first)
        return record if record and is_credited(record, candidate) else None


class _BesideOthers:
    """An evaluator with others on its device: what finds no room there is tried again when they are closed."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    @property
    def environment(self) -> Environment:
        return self._evaluator.environment

    def evaluate(self, task: Task, candidate: Candidate, **given: Any) -> Evaluation:
        """As the evaluator does. Raises NoRoomError too."""
        return self._evaluator.evaluate(task, candidate, **given, beside_others=True)


def _can_be_judged(eager: Fitted | Record | CudaL1Error) -> bool:
    """A module that does not even build is no task, and what a baseline makes of it says nothing."""
    return isinstance(eager, Record) and eager.evaluation.outcome is not Outcome.BUILD_FAILED


def _why_not(eager: Record | CudaL1Error) -> str:
    return f"does not build: {eager.evaluation.detail}" if isinstance(eager, Record) else str(eager)


def protocol_of(settings: BenchSettings) -> Protocol:
    """How the baselines are judged."""
    final = FINAL.model_copy(update={"budget_s": settings.final_budget_s})
    return final if settings.protocol == "final" else SCREEN
