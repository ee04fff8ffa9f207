"""What `bench` tells while it runs, and the table at its end."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.text import Text

from cuda_l1 import scoring
from cuda_l1.api.benching import Told
from cuda_l1.cli.output import Output
from cuda_l1.cli.progress import outcome
from cuda_l1.cli.results import ledger, ledger_by_task
from cuda_l1.config import BenchSettings, Precision
from cuda_l1.report.cells import with_bounds
from cuda_l1.report.ledger import ModelUse, combined
from cuda_l1.report.terminal import MISSING, table, times
from cuda_l1.search.bench import Ours, Overview, Standing, TaskRow, overview
from cuda_l1.search.events import CandidateDone, Confirmed, Event
from cuda_l1.texts import many
from cuda_l1.types import UNSOUND_FLAGS, Clock, Record, Task


class Telling:
    """Progress on stderr, a line for each verdict that was paid for."""

    def __init__(self, run: str, tasks: int, precision: Precision = "default", clock: Clock | None = None) -> None:
        """`precision`: by which a right one counts or does not; `clock`: whose figures are shown."""
        self._tasks, self._done, self._known, self._precision, self._clock = tasks, 0, 0, precision, clock
        self._began = time.monotonic()
        Output.say(f"run {run}: {many(tasks, 'task')}")

    def on_verdict(self, told: Told) -> None:
        """One more verdict, or why there is none."""
        if told.is_known:
            self._known += 1
            return
        name = f"{told.item.task.name} {told.item.candidate.label}"
        if not isinstance(told.result, Record):
            Output.say(f"{name}: not measured: {told.result}")
            return
        evaluation = told.result.evaluation
        timing = evaluation.timing(clock=self._clock)
        is_eager = told.item.candidate.label == "eager"
        figure = f" {times(timing.speedup)}" if timing and not is_eager else ""
        why_not = scoring.why_not(evaluation, self._precision, is_eager=is_eager)
        took = "; ".join(filter(None, (why_not, f"{evaluation.stage_s.get('total', 0.0):.1f} s")))
        Output.say(f"{name}: {evaluation.told(counts=not why_not)}{figure} ({took})")

    def on_search(self, task: Task) -> None:
        """A search begins."""
        Output.say(f"{task.name}: searching")

    def on_event(self, event: Event) -> None:
        """What the search finds."""
        if isinstance(event, CandidateDone):
            why = f" ({event.detail})" if event.detail else ""
            Output.say(f"  {event.label}: {outcome(event)} {times(event.speedup)}{why}")
        elif isinstance(event, Confirmed):
            held = "confirmed" if event.holds else f"not confirmed {event.detail}".rstrip()
            Output.say(f"  {event.label}, final: {held} {times(event.speedup)}")

    def on_row(self, row: TaskRow) -> None:
        """A task is done."""
        self._done += 1
        best = f"best baseline {row.best_baseline} {times(row.best_speedup)}" if row.best_baseline else "none counts"
        known = f", {many(self._known, 'verdict')} known from the archive" if self._known else ""
        self._known = 0
        took = time.monotonic() - self._began
        Output.say(
            f"[{self._done}/{self._tasks}, {took:.0f} s] {row.task}: "
            f"{f'skipped: {row.skipped}' if row.skipped else best}{known}"
        )


def show_rows(
    output: Output,
    rows: list[TaskRow],
    settings: BenchSettings,
    run: str,
    *,
    bundle: str | None,
    new: int | None,
    uses: Sequence[tuple[str, ModelUse]] = (),
) -> None:
    """The table, what stands apart, and the summary."""
    names = [name for name in settings.baselines if any(s.name == name for row in rows for s in row.baselines)]
    judged = [row for row in rows if row.skipped is None]
    ours = ("ours vs eager", "ours vs best") if settings.optimize else ()
    columns = ("task", "class", *names[1:], "best baseline", *ours, "remarks")
    totals = overview(rows, names)
    if judged:
        output.show(
            table(columns, [_cells(row, names[1:], bool(ours)) for row in judged], title="speed-up against eager"),
            *(Text(line) for line in _closing(totals, sum(row.sound and row.scaled is not None for row in rows))),
        )
    for row in rows:
        if row.skipped:
            output.show(Text(f"skipped {row.task}: {row.skipped}"))
    models = combined(use for _, use in uses)
    output.show(*ledger_by_task(uses), *ledger(models))
    if bundle:
        output.show(Text(f"written: {bundle}, {many(new or 0, 'new record')}"))
    output.show(Text(f"run {run}"))
    output.summary(
        run=run,
        tasks=len(rows),
        judged=len(judged),
        skipped={row.task: row.skipped for row in rows if row.skipped},
        unsound={row.task: [flag for flag in row.flags if flag in UNSOUND_FLAGS] for row in judged if not row.sound},
        baselines=[total.model_dump() for total in totals],
        bundle=bundle,
        models=[use.model_dump(mode="json") for use in models],
    )


def _cells(row: TaskRow, names: list[str], with_ours: bool) -> tuple[str, ...]:
    by_name = {standing.name: standing for standing in row.baselines}
    figures = [_cell(by_name.get(name), row) for name in names]
    best = f"{row.best_baseline} {times(row.best_speedup)}" if row.best_baseline else MISSING
    ours = _ours(row.ours) if with_ours else ()
    return (row.task, row.task_class or MISSING, *figures, best, *ours, "; ".join(_remarks(row)))


def _ours(found: Ours | None) -> tuple[str, str]:
    """Against eager and against the best baseline, with their intervals."""
    if found is None:
        return MISSING, MISSING
    return (
        with_bounds(found.speedup_eager, found.speedup_eager_low, found.speedup_eager_high),
        with_bounds(found.speedup_best_baseline, found.speedup_best_baseline_low, found.speedup_best_baseline_high),
    )


def _cell(standing: Standing | None, row: TaskRow) -> str:
    """The figure; with its class where that is another, and in brackets where it may not be the best for that."""
    if standing is None:
        return ""
    if standing.speedup is None:
        return str(standing.outcome) if standing.outcome else MISSING
    other = f" {standing.precision_class}" if standing.precision_class != row.task_class else ""
    return f"{times(standing.speedup)}{other}" if standing.counts else f"({times(standing.speedup)}{other})"


def _remarks(row: TaskRow) -> list[str]:
    eager = row.baselines[0]
    told = [f"eager {eager.outcome or MISSING}: {eager.detail}"] if eager.speedup is None else []
    in_brackets = (s for s in row.baselines if s.speedup is not None and not s.counts)
    told += [f"{s.name} does not count: {s.detail}" for s in in_brackets if s.precision_class == row.task_class]
    told += [flag for flag in row.flags if flag in (*UNSOUND_FLAGS, "random", "eval-mode")]
    told += [row.scaled] if row.scaled else []
    return told + ([row.ours.detail] if row.ours and row.ours.detail else [])


def _closing(totals: list[Overview], scaled: int) -> list[str]:
    apart = f"{scaled} of these tasks scaled down, `cuda-l1 report RUN` has their figures apart"
    return [
        f"{total.name}: geometric mean {times(total.geometric_mean)} "
        f"over {total.counted} of {many(total.tasks, 'sound task')}"
        for total in totals
        if total.name != "eager"
    ] + ([apart] if scaled else [])
