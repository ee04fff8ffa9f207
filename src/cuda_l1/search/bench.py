"""What a benchmark says of a task: how each baseline stands, which is the best of the class that counts, and how ours
compares. Verdicts come from `search.verdicts`; this turns records into rows and decides nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from cuda_l1 import scoring
from cuda_l1.archive import Archive
from cuda_l1.config import Precision, Protocol
from cuda_l1.errors import CudaL1Error, InfrastructureError, UsageError
from cuda_l1.ratios import geometric_mean
from cuda_l1.search.interfaces import SupportsEvaluate
from cuda_l1.search.verdicts import verdict
from cuda_l1.types import Candidate, Clock, Frozen, Outcome, PrecisionClass, Record, Task, unsound


class Standing(Frozen):
    """One baseline on one task."""

    name: str
    candidate_id: str
    record: str | None = None
    """Id of the record; None where there is none yet."""
    outcome: Outcome | None = None
    precision_class: PrecisionClass | None = None
    counts: bool = False
    """Whether it may be the best one: accepted, unsuspected and of a class that is exact enough."""
    speedup: float | None = None
    """Against eager on the objective clock; 1 for eager itself."""
    speedup_low: float | None = None
    """95 % interval; null at `screen`."""
    speedup_high: float | None = None
    detail: str = ""


class Ours(Frozen):
    """What a search found for a task: the final of its winner, or that there is none."""

    record: str | None = None
    technique: str | None = None
    precision_class: PrecisionClass | None = None
    speedup_eager: float | None = None
    speedup_eager_low: float | None = None
    speedup_eager_high: float | None = None
    speedup_best_baseline: float | None = None
    speedup_best_baseline_low: float | None = None
    speedup_best_baseline_high: float | None = None
    best_baseline: str | None = None
    """What it was compared with: the best baseline that the search knew."""
    detail: str = ""
    """Why there is no result."""


class TaskRow(Frozen):
    """One line of a benchmark."""

    task_id: str
    suite: str
    task: str
    level: int | None = None
    task_class: PrecisionClass | None = None
    flags: tuple[str, ...] = ()
    baselines: tuple[Standing, ...] = ()
    best_baseline: str | None = None
    """The fastest of those that count; None where none does."""
    best_of: tuple[str, ...] = ()
    """Those that count."""
    scaled: str | None = None
    """Why the task is not at its own sizes."""
    skipped: str | None = None
    """Why there is no verdict on it."""
    ours: Ours | None = None

    @property
    def sound(self) -> bool:
        """Whether it may stand in a headline."""
        return self.skipped is None and not unsound(self.flags)

    @property
    def best_speedup(self) -> float | None:
        """Of the best baseline, against eager."""
        return next((s.speedup for s in self.baselines if s.name == self.best_baseline), None)


def attempt(
    task: Task, candidate: Candidate, *, protocol: Protocol, archive: Archive, evaluator: SupportsEvaluate, run: str
) -> Record | CudaL1Error:
    """A verdict, or what stands in its way: a bad task or a fault of the machine must not end a whole suite. Raises
    ArchiveError: verdicts that cannot be kept are not paid for."""
    try:
        return verdict(task, candidate, protocol=protocol, archive=archive, evaluator=evaluator, run=run)
    except (UsageError, InfrastructureError) as error:
        return error


def row_of(
    task: Task,
    found: Sequence[tuple[Candidate, Record | CudaL1Error | None]],
    *,
    precision: Precision,
    clock: Clock | None,
    scaled: str | None = None,
) -> TaskRow:
    """The row of a task from its baselines, eager first, each with its record or what stood in its way."""
    standings = tuple(standing(candidate, known, precision, clock) for candidate, known in found)
    records = [known for _, known in found if isinstance(known, Record)]
    counted = {s.name: s.speedup for s in standings if s.counts and s.speedup is not None}
    correctness = next((r.evaluation.correctness for r in records if r.evaluation.correctness), None)
    return TaskRow(
        task_id=task.id,
        suite=task.suite,
        task=task.name,
        level=task.level,
        task_class=correctness.task_class if correctness else None,
        flags=records[0].evaluation.task_flags if records else (),
        baselines=standings,
        best_baseline=scoring.best_baseline(counted),
        best_of=tuple(counted),
        scaled=scaled,
    )


def standing(
    baseline: Candidate, known: Record | CudaL1Error | None, precision: Precision, clock: Clock | None
) -> Standing:
    """How one baseline fared."""
    if not isinstance(known, Record):
        detail = "not measured" if known is None else f"not measured: {known}"
        return Standing(name=baseline.label, candidate_id=baseline.id, detail=detail)
    evaluation, is_eager = known.evaluation, baseline.label == "eager"
    timing = evaluation.timing("eager", clock) if evaluation.accepted else None
    return Standing(
        name=baseline.label,
        candidate_id=baseline.id,
        record=known.id,
        outcome=evaluation.outcome,
        precision_class=evaluation.precision_class,
        counts=scoring.counts(evaluation, precision, is_eager=is_eager),
        speedup=None if timing is None else scoring.speedup(evaluation, clock, is_eager=is_eager),
        speedup_low=None if timing is None or is_eager else timing.speedup_low,
        speedup_high=None if timing is None or is_eager else timing.speedup_high,
        detail=evaluation.detail or scoring.why_not(evaluation, precision, is_eager=is_eager),
    )


def skipped_row(task: Task, reason: str) -> TaskRow:
    """The row of a task without verdicts."""
    return TaskRow(task_id=task.id, suite=task.suite, task=task.name, level=task.level, skipped=reason)


class Overview(Frozen):
    """One baseline over all sound tasks."""

    name: str
    counted: int
    """Tasks on which it counts."""
    tasks: int
    """Sound tasks in all."""
    geometric_mean: float | None
    """Of its speed-ups against eager, over the tasks on which it counts."""


def overview(rows: Sequence[TaskRow], names: Sequence[str]) -> list[Overview]:
    """How each baseline fares, and `best baseline` last; tasks that are unsound or have no verdict stand apart."""
    sound = [row for row in rows if row.sound]
    found = {
        name: [s.speedup for row in sound for s in row.baselines if s.name == name and s.counts and s.speedup]
        for name in names
    }
    found["best baseline"] = [row.best_speedup for row in sound if row.best_speedup]
    return [
        Overview(
            name=name,
            counted=len(speedups),
            tasks=len(sound),
            geometric_mean=geometric_mean(speedups) if speedups else None,
        )
        for name, speedups in found.items()
    ]
