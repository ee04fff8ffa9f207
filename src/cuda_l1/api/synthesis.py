"""Generate synthetic tasks, audit them, and keep the sound ones: `tasks` generates, `evaluator` audits."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from cuda_l1.api.pool import EvaluatorPool, Job
from cuda_l1.config import EvaluatorSettings
from cuda_l1.errors import TaskError
from cuda_l1.evaluator import Evaluator
from cuda_l1.tasks.synth import SMALL, SyntheticTask, for_memory, synthetic_tasks
from cuda_l1.tasks.synth.folder import Entry, Settings, SynthFolder
from cuda_l1.types import TaskAudit


def synthesise(
    folder: Path,
    *,
    count: int,
    settings: Settings,
    evaluators: EvaluatorSettings,
    levels: Collection[int],
    on_entry: Callable[[Entry], None] = lambda entry: None,
) -> list[Entry]:
    """The first `count` sound tasks of the seed's stream with one of `levels`, in `folder`.

    What the folder's manifest has already is not audited again, so the same call goes on where another ended.
    `on_entry` hears of every new line. Raises TaskError for a folder of something else, InfrastructureError.
    """
    store = SynthFolder(folder, settings)
    scale = SMALL if settings.device_memory_gib is None else for_memory(settings.device_memory_gib)
    stream = (made for made in synthetic_tasks(settings.seed, scale) if made.level in levels)
    kept: list[Entry] = []
    with _LazyPool(evaluators) as pool:
        while len(kept) < count:
            batch = list(itertools.islice(stream, count - len(kept)))
            for made, entry in pool.audited([made for made in batch if made.number not in store.entries]):
                store.add(made, entry)
                on_entry(entry)
            found = [store.entries[made.number] for made in batch]
            kept += [entry for entry in found if entry.sound]
    return kept


class _LazyPool:
    """Evaluators that start with the first task, since a folder may be complete."""

    def __init__(self, settings: EvaluatorSettings) -> None:
        self._settings = settings
        self._pool: EvaluatorPool | None = None

    def audited(self, tasks: list[SyntheticTask]) -> Iterator[tuple[SyntheticTask, Entry]]:
        """(task, its line of the manifest), in the order in which they finish."""
        if not tasks:
            return
        self._pool = self._pool or EvaluatorPool(self._settings)
        for job, entry in self._pool.run([Job(made, made.task.sha, made.task.name) for made in tasks], _audited):
            yield job.work, entry

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.__exit__(kind, error, at)


def _audited(evaluator: Evaluator, made: SyntheticTask) -> Entry:
    try:
        return _entry(made, evaluator.audit(made.task), "")
    except TaskError as error:  # a reference that does not work is no task
        return _entry(made, None, str(error))


def _entry(made: SyntheticTask, audit: TaskAudit | None, problem: str) -> Entry:
    sound = audit is not None and audit.sound
    return Entry(
        number=made.number,
        name=made.task.name,
        split=made.split,
        level=made.level,
        sha=made.task.sha,
        graph=made.graph,
        stages=made.stages,
        sound=sound,
        problem=problem if audit is None or sound else "; ".join(audit.details) or ", ".join(audit.flags),
        flags=audit.flags if audit else (),
        task_class=audit.task_class if audit else None,
        reference_us=audit.reference_us if audit else None,
    )
