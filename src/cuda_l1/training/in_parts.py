"""A policy whose weights lie in parts on several processes: PyTorch's FSDP2, as accelerate sets it up."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor


def is_in_parts(model: Any) -> bool:
    """Whether a model's weights lie in parts on several processes."""
    return any(isinstance(each, DTensor) for each in model.parameters())


def whole_weights(model: Any) -> dict[str, torch.Tensor] | None:
    """The weights of a model in parts, on the CPU of the main process, none in the others; None where each process has
    them all. Called in all processes, before the main one saves."""
    if not is_in_parts(model):
        return None
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    found: dict[str, Any] = get_model_state_dict(model, options=options)
    return found


def call_head(model: Any) -> None:
    """From now on a forward pass of a model in parts ends with a call of its output layer, on no token.

    TRL's loss reads the weight of that layer and does not call it. FSDP2 gathers it in one group with others, and
    before torch 2.13 holds the group's forward pass for unfinished until each of them was called. A backward pass
    finishes it as well; an evaluation has none, and the next step would find weights that nobody has gathered.
    """
    model.register_forward_hook(_call_head)


def _call_head(model: Any, given: tuple[Any, ...], output: Any) -> None:
    head: Any = model.get_output_embeddings()
    in_a_group = isinstance(head, FSDPModule)
    if in_a_group:
        head(torch.empty(0, head.weight.shape[1], dtype=head.weight.dtype, device=head.weight.device))
