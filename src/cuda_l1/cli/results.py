"""How results look to a person."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from cuda_l1.cli.output import Output
from cuda_l1.cli.progress import outcome
from cuda_l1.report.ledger import ModelUse
from cuda_l1.report.terminal import MISSING, microseconds, table, times, with_interval
from cuda_l1.reviewer import OPINIONS
from cuda_l1.search import Result
from cuda_l1.texts import many
from cuda_l1.types import proves_little

_CLAIMS = {
    "beats-best-baseline": "faster than the best baseline by more than the interval",
    "beats-eager": "faster than eager, not than the best baseline",
    "no-improvement": "nothing faster was found that holds",
}


FAILURES = 5
"""So many are shown; a technique that cannot be built fails in each combination again."""


def show_result(
    output: Output, result: Result, path: str | None, guard_us: float | None, uses: Sequence[ModelUse] = ()
) -> None:
    """The tables that end `optimize`, and where the file is."""
    baselines = [(b.name, outcome(b), times(b.speedup), b.detail) for b in result.baselines]
    final = result.final
    eager = result.versus_eager
    row = (
        result.task_id.partition("@")[0],
        f"{final.evaluation.outcome} ({final.evaluation.precision_class})" if final else "no improvement",
        with_interval(eager),
        with_interval(result.versus_best_baseline),
        f"{microseconds(eager.candidate_us)} (eager {microseconds(eager.opponent_us)})" if eager else MISSING,
        final.candidate.label if final else MISSING,
    )
    pairs = f", {many(len(eager.pairs), 'pair')}" if eager else ""
    columns = (
        "task",
        "outcome",
        f"vs eager (95 %{pairs})",
        f"vs best baseline: {result.held_against}" if result.held_against else "vs best baseline",
        "time",
        "technique",
    )
    output.show(
        table(("baseline", "outcome", "vs eager (screen)", ""), baselines),
        table(columns, [row]),
        *ledger(uses),
        Group(*(Text(line) for line in _closing(result, path, guard_us))),
    )


def ledger(uses: Sequence[ModelUse]) -> list[RenderableType]:
    """What the models cost, where any was asked."""
    if not uses:
        return []
    return [table(("model", *_LEDGER), [_use(use) for use in uses])]


def ledger_by_task(uses: Sequence[tuple[str, ModelUse]]) -> list[RenderableType]:
    """The same for each of several tasks, (name, use)."""
    return [table(("task", "model", *_LEDGER), [(task, *_use(use)) for task, use in uses])] if uses else []


_LEDGER = ("replies", "candidates", "accepted", "faster", "best (screen)", "final", "tokens in", "out", "USD", "")


def _use(use: ModelUse) -> tuple[str, ...]:
    counts = (use.replies, use.candidates, use.accepted, use.gains)
    return (
        f"{use.model} at {use.endpoint}",
        *map(str, counts),
        times(use.best_speedup),
        times(use.confirmed_speedup),
        f"{use.tokens_in:,}",
        f"{use.tokens_out:,}",
        "no price" if use.usd is None else f"{use.usd:.4f}",
        ", ".join(f"{number} {problem}" for problem, number in use.problems.items()),
    )


def _claim(result: Result) -> str:
    if result.tried == 0 and result.stop_reason == "time-budget":
        return "nothing was tried: no time was left for a candidate; give more with --budget"
    return _CLAIMS[result.outcome]


def _closing(result: Result, path: str | None, guard_us: float | None) -> list[str]:
    lines = [
        f"{_claim(result)}; {many(result.evaluations, 'evaluation')} in {result.wall_s:.0f} s, "
        f"ended by {result.stop_reason}, clock: {result.clock}"
    ]
    if result.final and (little := proves_little(result.final.evaluation.task_flags)):
        lines.append(f"no headline: {little}")
    if result.shrinkage is not None:
        held = f"{1 - result.shrinkage:.0%}"
        lines.append(f"the search saw {times(result.screen_speedup)}; the new measurement confirmed {held} of it")
    lines += [f"{n.technique} was {times(n.screen_speedup)} in its screen; {n.why}" for n in result.not_confirmed]
    lines += [f"could not be proposed: {failure}" for failure in result.failures[:FAILURES]]
    if len(result.failures) > FAILURES:
        lines.append(f"and {len(result.failures) - FAILURES} more that could not be proposed; --json lists all")
    records = [record for record in (result.winner, result.final) if record is not None]
    lines += [f"second opinion: {f.evidence}" for r in records for f in r.evaluation.findings if f.check in OPINIONS]
    if guard_us is not None:
        lines.append(f"guard: {guard_us:.2f} us a call, contained in the figures")
    if path:
        lines.append(f"written: {path}")
    return lines
