"""What the stages of a training run have logged, as plots."""

from __future__ import annotations

from cuda_l1.report.learning import Panel, one_after_the_other, panels
from cuda_l1.training.run_directory import RunDirectory, StageDirectory
from cuda_l1.training.sampling import ROUND
from cuda_l1.training.stages import STAGES


def stage_panels(run: RunDirectory) -> dict[str, list[Panel]]:
    """The plots of each stage that has logged something, in the order of the stages."""
    shown = {name: panels(run.stage(name).rows("metrics")) + _of_rounds(run.stage(name)) for name in STAGES}
    return {name: found for name, found in shown.items() if found}


def _of_rounds(stage: StageDirectory) -> list[Panel]:
    """What was logged while the rounds of a stage were learned from, one round after the other."""
    folders = sorted(stage.path.glob(f"{ROUND}*"), key=lambda path: int(path.name.removeprefix(ROUND)))
    rows = [list(StageDirectory(folder).rows("metrics")) for folder in folders]
    return [panel._replace(title=f"{panel.title}, all rounds") for panel in panels(one_after_the_other(rows))]
