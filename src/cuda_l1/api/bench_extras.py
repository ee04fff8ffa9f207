"""What `bench` adds to the baselines when it is asked to: a search on each task, and a bundle for another machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from cuda_l1.api.bench_run import BenchRun
from cuda_l1.api.llm import patience
from cuda_l1.api.searching import run_search
from cuda_l1.archive import Archive
from cuda_l1.archive.database import locate, sqlite_file
from cuda_l1.config import BenchSettings, SearchSettings
from cuda_l1.errors import InfrastructureError, UsageError
from cuda_l1.evaluator import Evaluator
from cuda_l1.report.figures import figures
from cuda_l1.report.ledger import ModelUse, uses_in
from cuda_l1.search import Result
from cuda_l1.search.bench import Ours, TaskRow
from cuda_l1.search.events import Event, Started
from cuda_l1.types import Clock, Task, default_clock


class Searched(NamedTuple):
    """What came of a search, and what language models were paid in it."""

    ours: Ours
    models: tuple[ModelUse, ...] = ()


def search_task(
    task: Task,
    settings: BenchSettings,
    *,
    device: str,
    archive: Archive,
    evaluator: Evaluator,
    runs: Path,
    run: BenchRun,
    on_event: Callable[[Event], None] = lambda event: None,
) -> Searched:
    """What a search within the budget finds for a task; one that this run had ended before, with this archive, is that
    same search.

    A task or a machine at fault is its `detail`. Ctrl-C goes on as KeyboardInterrupt.
    """
    clock = settings.clock or default_clock(settings.device)
    key = evaluator.environment.key
    stored = run.result_of_search(task)
    if stored is not None and _is_of(archive, task, *stored):
        return Searched(stored[1], _paid(task, archive, stored[0], key, clock))
    names: list[str] = []

    def heard(event: Event) -> None:
        if isinstance(event, Started):
            names.append(event.run)
            run.searching(task, event.run)
        on_event(event)

    try:
        result = run_search(
            task,
            _search_settings(task, settings, device),
            archive=archive,
            evaluator=evaluator,
            runs=runs,
            on_event=heard,
        )
    except (UsageError, InfrastructureError) as error:
        ours = Ours(detail=str(error).removeprefix(f"{task.id}: "))
        return Searched(ours, _paid(task, archive, names[0], key, clock) if names else ())
    if result.stop_reason == "interrupted":
        raise KeyboardInterrupt
    ours = _ours(result)
    run.searched(task, result.run, ours)
    return Searched(ours, _paid(task, archive, result.run, key, clock))


def _is_of(archive: Archive, task: Task, run: str, ours: Ours) -> bool:
    """Whether an archive holds what a search came to: runs may lie beside several archives."""
    if ours.record is not None:
        return bool(archive.matching(ours.record))
    return next(archive.records(task_sha=task.sha, run=run), None) is not None


def _paid(task: Task, archive: Archive, run: str, environment_key: str, clock: Clock) -> tuple[ModelUse, ...]:
    return tuple(uses_in(archive, run, environment_key, clock, task.sha))


def write_bundle(where: Path, rows: Iterable[tuple[Task, TaskRow]], archive: Archive, run: BenchRun) -> int:
    """Copies the records that the rows rest on into an archive of their own, those of the searches included, and what
    language models answered in these.

    Returns how many were new there. Raises ArchiveError where `where` is something else.
    """
    with Archive.open(where) as bundle:
        before = sum(1 for _ in bundle.records())
        for task, row in rows:
            search = run.result_of_search(task)
            found = search[1].record if search else None  # which an earlier run may have paid for
            for record_id in filter(None, (*(standing.record for standing in row.baselines), found)):
                for record in archive.matching(record_id):
                    bundle.append(record, task)
            if search is None:
                continue
            for record in archive.records(task_sha=task.sha, run=search[0]):
                bundle.append(record, task)
            bundle.replies.add(archive.replies.of_run(search[0], task.sha))
        return sum(1 for _ in bundle.records()) - before


def check_bundle(where: Path, archive: str | None) -> None:
    """Raises UsageError or ArchiveError before any work is done: a file that is no archive or may not be written, or
    the very `archive` (as it was named, None: by default) that the records are in."""
    if where.exists():
        mine = sqlite_file(locate(archive))
        if mine is not None and mine.exists() and where.samefile(mine):
            raise UsageError(f"--bundle {where}: is the archive itself; name another file")
        if not os.access(where, os.W_OK):
            raise UsageError(f"--bundle {where}: cannot be written to; name another file")
        Archive.open(where, create=False).close()


def _search_settings(task: Task, settings: BenchSettings, device: str) -> SearchSettings:
    return SearchSettings(
        task_sha=task.sha,
        device=device,
        clock=settings.clock,
        precision=settings.precision,
        budget_s=settings.budget_s,
        budget_evaluations=settings.budget_evaluations,
        proposers=settings.proposers,
        final_budget_s=settings.final_budget_s,
        patience=patience(settings.llm or settings.policy),
        limits=settings.limits,
        llm=settings.llm,
        policy=settings.policy,
    )


def _ours(result: Result) -> Ours:
    final = result.final
    return Ours(
        record=final.id if final else None,
        technique=final.candidate.label if final else None,
        precision_class=final.evaluation.precision_class if final else None,
        best_baseline=result.held_against,
        detail="" if final else f"nothing faster was found that holds ({result.stop_reason})",
        **figures(result.versus_eager, result.versus_best_baseline),
    )
