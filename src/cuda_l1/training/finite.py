"""What ends a training before numbers that are none reach a checkpoint. Imports transformers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed.tensor import DTensor
from transformers import TrainerCallback

from cuda_l1.errors import UsageError
from cuda_l1.training.run_directory import StageDirectory


class Finite(TrainerCallback):
    """Ends the training where a gradient is not finite, before an update uses it, and where a weight is not, after the
    update that made it so and before anything is written. Raises UsageError."""

    def __init__(self, stage: StageDirectory) -> None:
        self._stage = stage

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Called in every process, when gradients are clipped."""
        gradients = [each.grad for each in model.parameters() if each.grad is not None]
        self._check("gradients", gradients, state.global_step + 1)

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Called in every process, after the update."""
        trained = [each.detach() for each in model.parameters() if each.requires_grad]
        self._check("weights", trained, state.global_step)

    def _check(self, what: str, values: Sequence[torch.Tensor], step: int) -> None:
        if are_finite(values):
            return
        kept = self._stage.checkpoint()
        raise UsageError(
            f"the {what} at step {step} are not finite; begin another run with a lower learning rate (the last good "
            f"checkpoint is {kept.name if kept else 'the beginning'})"
        )


def are_finite(values: Sequence[torch.Tensor]) -> bool:
    """Whether every number of all tensors is finite; the device is waited for once. Where tensors lie in parts on
    several processes, all of these get the same answer."""
    largest: Any = torch.nn.utils.get_total_norm(list(values), math.inf)
    whole = largest.full_tensor() if isinstance(largest, DTensor) else largest
    return math.isfinite(whole.item())
