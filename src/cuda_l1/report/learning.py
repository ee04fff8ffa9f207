"""The curves of a training run, from the rows that its stages have logged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

STEP = "step"
TOGETHER = (
    ("Loss", ("loss", "validation_loss")),
    ("Right replies", ("train_pass_rate", "validation_pass_rate", "pass_rate")),
    ("Right replies to training tasks by level", ("train_pass_rate_level_",)),
    ("Right replies to validation tasks by level", ("validation_pass_rate_level_",)),
    ("Replies to training tasks, shares", ("train_invalid_replies", "train_cut_replies", "train_unique_replies")),
    (
        "Replies to validation tasks, shares",
        ("validation_invalid_replies", "validation_cut_replies", "validation_unique_replies"),
    ),
    ("Replies, shares", ("invalid_replies", "cut_replies", "unique_replies", "flat_groups")),
    ("Verdicts of training tasks, shares", ("train_known_verdicts", "train_faults")),
    ("Verdicts of validation tasks, shares", ("validation_known_verdicts", "validation_faults")),
    ("Verdicts, shares", ("known_verdicts", "faults")),
    ("Reward", ("reward", "validation_reward")),
    ("Speed-up of right replies, geometric mean", ("train_speedup_right", "validation_speedup_right", "speedup_right")),
    ("Best speed-up of a round", ("train_speedup_best", "validation_speedup_best", "speedup_best")),
    ("Seconds of a step", ("generate_s", "wait_s", "train_s", "step_s")),
    ("Seconds of all evaluators together in a step", ("build_s", "lease_s", "evaluate_s")),
    ("Share of a step in which the training waits", ("wait_share",)),
    ("Accuracy of tokens", ("token_accuracy", "validation_token_accuracy")),
)
"""Figures of one plot; a name that ends in an underscore stands for all that begin with it."""
SILENT = frozenset({STEP, "round", "rate", "validation_score", "epoch", "seconds", "tokens"})
"""What is no figure of its own: places in time, and what is a copy of another figure."""


class Curve(NamedTuple):
    """One figure over the steps of a stage."""

    name: str
    points: tuple[tuple[float, float], ...]
    """(step, value), in the order of the steps; finite values alone."""


class Panel(NamedTuple):
    """Curves of one plot."""

    title: str
    curves: tuple[Curve, ...]


def panels(rows: Iterable[Mapping[str, Any]]) -> list[Panel]:
    """The plots of one stage: figures that belong together first, then each other figure alone.

    `rows` are lines of `metrics.jsonl`: a `step` and figures by their names. What is no number is left out.
    """
    found = {curve.name: curve for curve in curves(rows)}
    shown: list[Panel] = []
    for title, names in TOGETHER:
        chosen = [name for name in found if any(_belongs(name, pattern) for pattern in names)]
        if chosen:
            shown.append(Panel(title, tuple(found.pop(name) for name in chosen)))
    return shown + [Panel(name.replace("_", " ").capitalize(), (curve,)) for name, curve in found.items()]


def curves(rows: Iterable[Mapping[str, Any]]) -> list[Curve]:
    """Every figure of the rows, in the order in which they first appear; of a step that stands twice the last row."""
    points: dict[str, dict[float, float]] = {}
    for row in rows:
        if not _is_number(row.get(STEP)):
            continue
        for name, value in row.items():
            if name not in SILENT and _is_number(value):
                points.setdefault(name, {})[float(row[STEP])] = float(value)
    return [Curve(name, tuple(sorted(found.items()))) for name, found in points.items()]


def one_after_the_other(parts: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Rows of several trainings as one: the steps of each begin where those before it ended."""
    joined, before = list[dict[str, Any]](), 0.0
    for rows in parts:
        steps = [float(row[STEP]) for row in rows if _is_number(row.get(STEP))]
        joined += [{**row, STEP: before + float(row[STEP])} for row in rows if _is_number(row.get(STEP))]
        before += max(steps, default=0.0)
    return joined


def _belongs(name: str, pattern: str) -> bool:
    return name.startswith(pattern) if pattern.endswith("_") else name == pattern


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
