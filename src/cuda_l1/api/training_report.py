"""What the stages of a training run have logged, as plots."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from cuda_l1.report.learning import Panel, one_after_the_other, panels
from cuda_l1.training.run_directory import RunDirectory, StageDirectory
from cuda_l1.training.sampling import ROUND
from cuda_l1.training.stages import STAGES


def stage_panels(run: RunDirectory) -> dict[str, list[Panel]]:
    """The plots of each stage that has logged something, in the order of the stages."""
    shown = {name: panels(run.stage(name).rows("metrics")) + _of_rounds(run.stage(name)) for name in STAGES}
    return {name: found for name, found in shown.items() if found}


def time_splits(run: RunDirectory) -> dict[str, dict[str, float]]:
    """By stage: seconds of a step on average (`generate_s`, `wait_s`, `train_s`, `step_s`, and of all evaluators
    together `build_s`, `lease_s`, `evaluate_s`), and `wait_share`, the share of it in which the training waits."""
    found = {name: [row for row in run.stage(name).rows("metrics") if row.get("step_s")] for name in STAGES}
    return {name: _split(rows) for name, rows in found.items() if rows}


def _split(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    names = ("generate_s", "wait_s", "train_s", "step_s", "build_s", "lease_s", "evaluate_s")
    means = {name: math.fsum(row.get(name, 0.0) for row in rows) / len(rows) for name in names}
    return {**means, "wait_share": means["wait_s"] / means["step_s"]}


def _of_rounds(stage: StageDirectory) -> list[Panel]:
    """What was logged while the rounds of a stage were learned from, one round after the other."""
    folders = sorted(stage.path.glob(f"{ROUND}*"), key=lambda path: int(path.name.removeprefix(ROUND)))
    rows = [list(StageDirectory(folder).rows("metrics")) for folder in folders]
    return [panel._replace(title=f"{panel.title}, all rounds") for panel in panels(one_after_the_other(rows))]
