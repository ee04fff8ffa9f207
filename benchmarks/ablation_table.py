"""From replies to held-out tasks to the table of the policy ablation: figures, intervals, Markdown and JSON.

A task's figure is the speed-up of the best reply to it, 1.0 at least: whoever has no faster variant keeps the original.
`one reply` is what asking once is worth: the geometric mean over the replies, each 1.0 at least, in place of the best.
Intervals are 95 %: with several seeds Student's t on the figures of the seeds (of speed-ups on their logarithms), with
one a bootstrap over tasks, which says nothing about another seed.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from cuda_l1.report.cells import times
from cuda_l1.report.markdown import table_lines
from cuda_l1.scoring import t_quantile

GAIN = 1.01
"""Faster is more than this."""
DRAWS = 2000
"""Of the bootstrap."""


class Reply(NamedTuple):
    """What came of one reply."""

    task: str
    right: bool
    reward: float | None
    """Speed-up over the reference, 0 for a failure; None where the machine failed."""
    outcome: str = ""
    candidate: str | None = None
    """Its id."""


class Cell(NamedTuple):
    """A figure and its interval."""

    value: float
    low: float
    high: float
    over: str
    """What the interval is over: `3 seeds`, `24 tasks`."""


class Line(NamedTuple):
    """A row of the table; `outcomes` are shares of the replies to held-out tasks."""

    name: str
    label: str
    cells: dict[str, Cell]
    training: float
    """Replies that were given a verdict while it learned, on average over seeds."""
    held_out: float
    """The same in the evaluation."""
    outcomes: dict[str, float]
    missing: str = ""
    """Which runs are not finished."""


Tasks = Sequence[tuple[str, Sequence[Reply]]]
"""Each task and the replies to it; a bootstrap has some of them several times."""
Figure = Callable[[Tasks], float]


def by_task(replies: Sequence[Reply]) -> list[tuple[str, list[Reply]]]:
    """Those that have a verdict, by task, in the order of the tasks' names."""
    found: dict[str, list[Reply]] = defaultdict(list)
    for reply in replies:
        if reply.reward is not None:
            found[reply.task].append(reply)
    return sorted(found.items())


def best(replies: Sequence[Reply]) -> float:
    """The speed-up of a task's best right reply, 1.0 at least."""
    return max([1.0, *(reply.reward or 0.0 for reply in replies if reply.right)])


def one_reply(replies: Sequence[Reply]) -> float:
    """The geometric mean of a task's replies, each 1.0 at least."""
    return statistics.geometric_mean(best([reply]) for reply in replies)


def success(tasks: Tasks) -> float:
    """Share of right replies."""
    return statistics.fmean(reply.right for _, replies in tasks for reply in replies)


def mean(tasks: Tasks) -> float:
    """Arithmetic mean over tasks."""
    return statistics.fmean(best(replies) for _, replies in tasks)


def geometric(tasks: Tasks) -> float:
    """Geometric mean over tasks."""
    return statistics.geometric_mean(best(replies) for _, replies in tasks)


def single(tasks: Tasks) -> float:
    """Geometric mean over tasks of what one reply is worth."""
    return statistics.geometric_mean(one_reply(replies) for _, replies in tasks)


def faster(tasks: Tasks) -> float:
    """Share of tasks with a reply that is faster than the reference."""
    return statistics.fmean(best(replies) > GAIN for _, replies in tasks)


def faster_than(baselines: Mapping[str, float]) -> Figure:
    """Share of tasks with a reply that is faster than their best baseline, of tasks whose baselines were measured."""

    def share(tasks: Tasks) -> float:
        measured = [best(replies) > GAIN * baselines[task] for task, replies in tasks if task in baselines]
        return statistics.fmean(measured) if measured else 0.0

    return share


FIGURES: dict[str, Figure] = {
    "success": success,
    "single": single,
    "mean": mean,
    "geometric": geometric,
    "faster": faster,
}
OVER: dict[str, tuple[str, Callable[[Sequence[Reply]], float]]] = {
    "single_over_2": ("stages-1-2", one_reply),
    "over_2": ("stages-1-2", best),
    "single_over_grpo": ("grpo", one_reply),
    "over_grpo": ("grpo", best),
}
"""Ratios to another row: which, and of which figure of a task."""
SPEEDUPS = frozenset({"single", "mean", "geometric", *OVER})
HEADS = {
    "success": "right replies",
    "single": "one reply, geometric",
    "mean": "best reply, mean",
    "geometric": "best reply, geometric",
    "faster": "faster than the reference",
    "faster_baseline": "than the best baseline",
    "single_over_2": "one reply, over `stages-1-2`",
    "over_2": "best, over `stages-1-2`",
    "single_over_grpo": "one reply, over `grpo`",
    "over_grpo": "best, over `grpo`",
}


def cells(seeds: Mapping[int, Sequence[Reply]], baselines: Mapping[str, float]) -> dict[str, Cell]:
    """The figures of a row from the replies of each seed; the last one where `baselines` (speed-up of the best one
    over the reference, by task) are known."""
    figures = {**FIGURES, **({"faster_baseline": faster_than(baselines)} if baselines else {})}
    found = [by_task(replies) for replies in seeds.values()]
    return {name: cell(found, figure, is_speedup=name in SPEEDUPS) for name, figure in figures.items()}


def cell(seeds: Sequence[Tasks], figure: Figure, *, is_speedup: bool) -> Cell:
    """A figure of several seeds with the interval over them, or of one with that over its tasks."""
    if len(seeds) > 1:
        return _over_seeds([figure(tasks) for tasks in seeds], is_speedup=is_speedup)
    return _over_tasks(seeds[0], figure)


def over(
    seeds: Mapping[int, Sequence[Reply]],
    others: Mapping[int, Sequence[Reply]],
    of: Callable[[Sequence[Reply]], float] = best,
) -> Cell | None:
    """How many times faster, geometrically, than another row with the same seeds, on the tasks that both have; `of` is
    a task's figure. None where there is nothing in common."""
    pairs = [_ratios(by_task(seeds[seed]), dict(by_task(others[seed])), of) for seed in seeds if seed in others]
    if not pairs or not all(pairs):
        return None
    return cell(pairs, lambda ratios: statistics.geometric_mean(r.reward or 1.0 for _, (r,) in ratios), is_speedup=True)


def _ratios(
    mine: Tasks, others: Mapping[str, Sequence[Reply]], of: Callable[[Sequence[Reply]], float]
) -> list[tuple[str, list[Reply]]]:
    """The quotient of both, for each task."""
    common = [(task, of(replies) / of(others[task])) for task, replies in mine if task in others]
    return [(task, [Reply(task, True, ratio)]) for task, ratio in common]


def _over_seeds(values: Sequence[float], *, is_speedup: bool) -> Cell:
    scaled = [math.log(value) for value in values] if is_speedup else list(values)
    middle = statistics.fmean(scaled)
    half = t_quantile(len(scaled) - 1) * statistics.stdev(scaled) / math.sqrt(len(scaled))
    ends = [middle, middle - half, middle + half]
    shown = [math.exp(each) for each in ends] if is_speedup else [min(1.0, max(0.0, each)) for each in ends]
    return Cell(*shown, f"{len(values)} seeds")


def _over_tasks(tasks: Tasks, figure: Figure) -> Cell:
    """The 2.5 % and 97.5 % quantiles of the figure of as many tasks drawn with repetition."""
    rng = Random(0)
    drawn = sorted(figure(rng.choices(tasks, k=len(tasks))) for _ in range(DRAWS))
    low, high = (drawn[round(share * (DRAWS - 1))] for share in (0.025, 0.975))
    return Cell(figure(tasks), low, high, f"{len(tasks)} tasks")


def outcomes(seeds: Mapping[int, Sequence[Reply]]) -> dict[str, float]:
    """The share of each outcome among the replies of all seeds, the commonest first. `suspected` was accepted, and is
    not right for what a finding says."""
    named = [
        "suspected" if reply.outcome == "ACCEPTED" and not reply.right else reply.outcome
        for replies in seeds.values()
        for reply in replies
    ]
    return {name: count / len(named) for name, count in Counter(named).most_common()}


def markdown(lines: Sequence[Line]) -> list[str]:
    """The table, a line for each row, and what is not finished."""
    names = [name for name in HEADS if any(name in line.cells for line in lines)]
    head = ["row", "", *(HEADS[name] for name in names), "interval over", "replies in training", "in the evaluation"]
    body = [
        [line.name, line.label, *(_text(line, name) for name in names), _over(line), f"{line.training:,.0f}",
         f"{line.held_out:,.0f}"]
        for line in lines
        if line.cells
    ]  # fmt: skip
    missing = [f"- not finished: {line.missing}" for line in lines if line.missing]
    came = [
        [line.name, ", ".join(f"{name} {share:.0%}" for name, share in line.outcomes.items())]
        for line in lines
        if line.cells
    ]
    return [
        *table_lines(head, body), "", *missing, *([""] if missing else []),
        "What replies to held-out tasks came to, by our evaluator:", "", *table_lines(["row", "outcomes"], came), "",
    ]  # fmt: skip


def document(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """The same for programs."""
    return [
        {**line._asdict(), "cells": {name: each._asdict() for name, each in line.cells.items()}} for line in lines
    ]  # fmt: skip


def _over(line: Line) -> str:
    return "; ".join(dict.fromkeys(cell.over for cell in line.cells.values()))


def _text(line: Line, name: str) -> str:
    found = line.cells.get(name)
    if found is None:
        return "-"
    values = (found.value, found.low, found.high)
    shown = [times(each) if name in SPEEDUPS else f"{each:.0%}" for each in values]
    return f"{shown[0]} ({shown[1]} to {shown[2]})"
