"""Figures that no trainer reports, for the tracker of a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from cuda_l1.training.loading import trackers
from cuda_l1.training.run_directory import RunDirectory

PROJECT = "huggingface"
"""Where trainers report to, too: their default."""


def track(run: RunDirectory, stage: str, step: int, figures: Mapping[str, Any]) -> None:
    """Reports the numbers among the figures of a stage's step, as `STAGE/NAME`. Raises UsageError where the tracker is
    not installed."""
    numbers = {f"{stage}/{name}": float(value) for name, value in figures.items() if isinstance(value, int | float)}
    for name in trackers(run.recipe):
        if name == "tensorboard":
            from torch.utils.tensorboard import SummaryWriter

            with SummaryWriter(str(run.stage(stage).path / "runs")) as writer:
                for each, value in numbers.items():
                    writer.add_scalar(each, value, step)
            continue
        tracker: Any = import_module(name)
        own = f"{run.name}-{stage}"
        tracker.init(project=PROJECT, name=own, resume="allow", **({"id": own} if name == "wandb" else {}))
        tracker.log(numbers)
        tracker.finish()
