"""The search: eager, a first candidate and the baselines, then propose - skip what is known - evaluate and record, then
the winner measured anew."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from cuda_l1.archive import Archive
from cuda_l1.config import SearchSettings
from cuda_l1.proposers import Proposer
from cuda_l1.search.baselines import measure_baselines, measure_eager
from cuda_l1.search.confirmation import Export, confirm
from cuda_l1.search.events import Event, Started, Stopped, Waiting
from cuda_l1.search.interfaces import SupportsEvaluate, SupportsReview
from cuda_l1.search.result import Result
from cuda_l1.search.review import Reviews
from cuda_l1.search.schedule import Schedule
from cuda_l1.search.state import Search
from cuda_l1.search.stopping import StopReason, StopRules
from cuda_l1.types import Candidate, Task


def optimize(
    task: Task,
    proposers: Sequence[Proposer],
    *,
    settings: SearchSettings,
    archive: Archive,
    evaluator: SupportsEvaluate,
    run: str,
    baselines: Sequence[Candidate],
    export: Export | None = None,
    reviewer: SupportsReview | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    roofline_us: float | None = None,
    started: float | None = None,
) -> Result:
    """Searches for a faster `ModelNew` within the budget of `settings` and measures the winner anew.

    `baselines` begins with eager. `export` turns the winner into the file that is handed out, which is what the final
    measures. `reviewer` is asked about candidates whose speed-up is a jump. `roofline_us` is a bound on the objective
    clock that ends the search when reached. `started` is the `time.monotonic()` at which the command began, since the
    time budget covers all of it.

    Every record is in the archive as soon as it exists. Called again with the same `run`, archive and settings after
    an interruption, it takes the same decisions again and pays only for what is missing.

    Ctrl-C: Stopped("interrupted") is emitted; where a winner is confirmed its Result is returned, else the
    KeyboardInterrupt goes on. Raises UsageError (budget not positive), TaskError (eager does not run),
    InfrastructureError (the machine failed three times in a row), ArchiveError.
    """
    began = time.monotonic() if started is None else started
    rules = StopRules.of(settings, roofline_us)
    reviews = Reviews(reviewer, archive, on_event, settings.clock, settings.precision, roofline_us)
    search = Search(task, settings, rules, archive, evaluator, reviews, run, on_event, began)
    names = tuple(baseline.label for baseline in baselines), tuple(proposer.name for proposer in proposers)
    on_event(Started(task.id, run, *names, settings.budget_s, settings.budget_evaluations))
    try:
        measure_eager(search, baselines[0])
        schedule = Schedule(task, proposers, baselines[:1], on_wait=lambda names: on_event(Waiting(names)))
        try_first(search, schedule)
        measure_baselines(search, baselines[1:])
        reason = explore(search, schedule)
        on_event(Stopped(reason, search.evaluations, search.duplicates))
        confirm(search, export)
    except KeyboardInterrupt:
        reason = "interrupted"
        on_event(Stopped(reason, search.evaluations, search.duplicates))
        if search.final is None:
            raise
    return _result(search, reason, [line for proposer in proposers for line in proposer.failures])


def try_first(search: Search, schedule: Schedule) -> None:
    """One candidate before the baselines that compile, where time is short: a single one of these can take all of it.

    A language model is not waited for.
    """
    if search.settings.budget_s is None or search.rules.reason(search.progress()) is not None:
        return
    began = time.monotonic()
    candidate = schedule.propose(search.history, began + search.rules.spare_s(search.progress()), waits=False)
    if candidate is not None:
        search.screen(candidate)
    search.first_s = time.monotonic() - began


def explore(search: Search, schedule: Schedule) -> StopReason:
    """Proposes, skips what is known, evaluates and records, until a rule says stop; returns why."""
    while (reason := search.rules.reason(search.progress())) is None:
        candidate = schedule.propose(search.history, time.monotonic() + search.rules.spare_s(search.progress()))
        if candidate is None:
            return search.rules.reason(search.progress()) or "exhausted"
        if not search.is_repeat(candidate):
            search.screen(candidate)
    return reason


def _result(search: Search, reason: StopReason, failures: Sequence[str]) -> Result:
    return Result(
        task_id=search.task.id,
        task_sha=search.task.sha,
        run=search.run,
        clock=search.clock,
        winner=search.winner,
        final=search.final,
        unconfirmed=tuple(search.unconfirmed),
        not_confirmed=tuple(search.not_confirmed),
        baselines=tuple(search.baselines),
        best_baseline=search.best_baseline,
        stop_reason=reason,
        evaluations=search.evaluations,
        tried=len(search.screened),
        duplicates=search.duplicates,
        failures=tuple(failures),
        wall_s=time.monotonic() - search.started,
    )
