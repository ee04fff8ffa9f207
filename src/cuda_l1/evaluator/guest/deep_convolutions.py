"""Convolutions in three dimensions in float64, as truth needs them, on a GPU.

cuDNN has no quick kernel for these. PyTorch's own unfold the input, sample by sample, and multiply matrices: on an H200
they took 1.3 to 17 times less time in six tasks of KernelBench's level 1, for one and two dimensions neither wins
(docs/lab-notes.md). Which one computes hangs on the memory that is free at the moment; they differ by what float64
rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from .room import free_bytes
from .tensors import map_leaves

CONVOLUTIONS: frozenset[Callable[..., Any]] = frozenset((torch.conv3d, torch.conv_transpose3d))

_SHARE_OF_FREE = 4
"""An unfolded sample takes at most one part in so many of the free memory, which others may want, too."""


def convolve(func: Callable[..., torch.Tensor], args: Sequence[Any], kwargs: Mapping[str, Any]) -> torch.Tensor:
    """What one of `CONVOLUTIONS` makes of its arguments, without cuDNN where there is room for it.

    Raises:
        whatever `func` raises.
    """
    named = dict(zip(("input", "weight"), args, strict=False)) | dict(kwargs)
    data, weight = named.get("input"), named.get("weight")
    if not (isinstance(data, torch.Tensor) and isinstance(weight, torch.Tensor)):
        return func(*args, **kwargs)  # its error says which
    if not (data.is_cuda and data.dtype is torch.float64):
        return func(*args, **kwargs)
    made = func(*map_leaves(args, _shape_alone), **map_leaves(dict(kwargs), _shape_alone))
    places = data if func is torch.conv_transpose3d else made
    unfolded = math.prod(weight.shape[1:]) * math.prod(places.shape[-3:]) * data.element_size()
    if unfolded * _SHARE_OF_FREE > free_bytes():
        return func(*args, **kwargs)
    with _without_cudnn():
        return func(*args, **kwargs)


def _shape_alone(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to("meta")


@contextmanager
def _without_cudnn() -> Iterator[None]:
    cudnn = torch.backends.cudnn
    before = cudnn.enabled
    cudnn.enabled = False
    try:
        yield
    finally:
        cudnn.enabled = before
