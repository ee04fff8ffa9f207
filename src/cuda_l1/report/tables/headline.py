"""Against the best baseline of the same class: what a method adds to what PyTorch itself offers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cuda_l1.config import Precision
from cuda_l1.report.aggregates import (
    GAIN,
    arithmetic_mean,
    floored,
    floored_mean,
    geometric_mean,
    quartiles,
    share_above,
)
from cuda_l1.report.cells import Cell, Ratio, Row, Share, Table
from cuda_l1.report.entries import EAGER, Method
from cuda_l1.report.sections import Section, TaskView
from cuda_l1.report.versus import Best, Standing, against, against_best, standings
from cuda_l1.types import other_clock

COLUMNS = (
    *("method", "level", "geometric mean", "not floored", "mean", "75 %", "50 %", "25 %", "max"),
    *("beats it", f"> {GAIN}x", "vs eager", "other clock", "tasks"),
)
NOTES = (
    "Against the fastest of the baselines whose class counts. It is always there to be used, so a task on which a "
    "method failed, is slower, or took nothing of what it screened to a final counts 1; `not floored` is the geometric "
    "mean of what was measured, as it is.",
    "In brackets: 95 % over tasks. `beats it`: faster by more than the interval of the task's own figure, of those "
    "that have one. `vs eager`: geometric mean, floored alike. `other clock`: the same comparisons on the clock that "
    "is not the objective.",
    "tasks: those that the figures are over, of all sound ones. A task on which candidate and best baseline were not "
    "measured alike is in none.",
)

SCREENED = (
    "A screen is one pair without an interval, and the best of many screens is partly the luckiest: quote finals."
)


def headline(section: Section) -> Table:
    """Method x level against the best baseline: means floored at 1 and not, interval, share that beats it, coverage."""
    rows = []
    for level, views in section.groups().items():
        for method in section.systems:
            cells = _cells(section, method, views)
            if cells:
                rows.append(Row((method.name, level, *cells, _coverage(section, method, views))))
    screened = (SCREENED,) if section.protocol == "screen" else ()
    notes = (*NOTES, best_of(section), *screened)
    return Table("headline", "Against the best baseline", COLUMNS, tuple(rows), notes)


def best_of(section: Section) -> str:
    """Which baselines the best one is chosen from, and on how many tasks each may be it: a sentence for readers."""
    by_task = {view.task.sha: {EAGER, *view.baselines} for view in section.sound}
    for method in section.systems:
        for one, best in known(section, standings(section, method, section.sound)):
            by_task[one.view.task.sha] |= set(best.best_of if best else ())
    counted = Counter(name for names in by_task.values() for name in names)
    if counted.keys() <= {EAGER}:
        return (
            "No baseline but eager is known here: against the best one is against eager. `cuda-l1 bench` measures them."
        )
    ordered = sorted(counted.items(), key=lambda item: (item[0] != EAGER, -item[1], item[0]))
    told = ", ".join(f"{name} {number}/{len(by_task)}" for name, number in ordered)
    return f"The best baseline is the best of those that are known and count, on so many of all sound tasks: {told}."


def _cells(section: Section, method: Method, views: Sequence[TaskView]) -> tuple[Cell, ...] | None:
    found = known(section, standings(section, method, views))
    if not found:
        return None
    ratios = [best.ratio if best else None for _, best in found]
    best = [floored(ratio.value if ratio else None) for ratio in ratios]
    middle = quartiles(best)
    quarters = (middle.upper, middle.median, middle.lower) if middle else (None, None, None)
    eager = [ratio.value if (ratio := against(section, one)) else None for one, _ in found]
    return (
        floored_mean(best),
        geometric_mean([ratio.value for ratio in ratios if ratio]),
        *(None if figure is None else Ratio(figure) for figure in (arithmetic_mean(best), *quarters, max(best))),
        _beaten(ratios),
        share_above(best, GAIN),
        floored_mean(eager),
        _other_clock(section, method, views),
    )


def known(section: Section, found: Sequence[Standing]) -> list[tuple[Standing, Best | None]]:
    """Those with a figure against the best baseline, and those that failed or were given up, with None.

    The others say nothing: candidate and best baseline were not measured alike.
    """
    pairs = [(one, against_best(section, one)) for one in found]
    return [(one, best) for one, best in pairs if best or not (one.counts and one.confirmed)]


def _beaten(ratios: Sequence[Ratio | None]) -> Share | None:
    """None where no figure has an interval; a failure beats nothing."""
    decided = [ratio for ratio in ratios if ratio is None or ratio.low is not None]
    if not any(decided):
        return None
    return Share(sum(ratio is not None and (ratio.low or 0.0) > 1.0 for ratio in decided), len(decided))


def _coverage(section: Section, method: Method, views: Sequence[TaskView]) -> Share:
    return Share(len(known(section, standings(section, method, views))), len(views))


def _other_clock(section: Section, method: Method, views: Sequence[TaskView]) -> Ratio | None:
    """Of the same candidates; None on a device that has one clock."""
    other = other_clock(section.clock)
    there = replace(section, clock=other)
    found = [against_best(there, one) for one in standings(section, method, views)]
    return floored_mean([best.ratio.value for best in found if best])


def precisions(by_precision: Mapping[Precision, Section]) -> Table:
    """Method x least exact class: each against the fastest baseline of that class."""
    rows = []
    for precision, section in by_precision.items():
        for method in section.systems:
            found = standings(section, method, section.sound)
            pairs = known(section, found)
            best = [best.ratio.value if best else None for _, best in pairs]
            counted = Share(sum(one.counts for one in found), len(section.sound))
            rows.append(
                Row((method.name, precision, floored_mean(best), counted, Share(len(best), len(section.sound))))
            )
    return Table(
        name="precisions",
        title="Against the best baseline, by the least exact class that counts",
        columns=("method", "precision", "geometric mean", "success", "tasks"),
        rows=tuple(rows),
        notes=("`default` is each task's own class. Baselines of less exact classes are no denominator.",),
    )
