"""Every stage there is. A stage more is one function and one line in its file."""

from cuda_l1.tasks.synth.stages import (
    attention,
    chains,
    convolutions,
    layouts,
    losses,
    matmuls,
    norms,
    pointwise,
    reductions,
)
from cuda_l1.tasks.synth.stages.stage import Stage

STAGES: tuple[Stage, ...] = (
    *pointwise.STAGES,
    *norms.STAGES,
    *reductions.STAGES,
    *matmuls.STAGES,
    *convolutions.STAGES,
    *attention.STAGES,
    *losses.STAGES,
    *chains.STAGES,
    *layouts.STAGES,
)

__all__ = ["STAGES", "Stage"]
