"""Inputs that hold what another one holds: an edge from a node to itself, a label that was guessed, a pair of equal
vectors.

Of independent draws none do, and who leaves out what is done where two are equal is right for all of them.
"""

from __future__ import annotations

from collections.abc import Collection

import torch

from .agreed import as_agreed, keeping_what_stays, with_each
from .drawing import Inputs
from .reading import read
from .traits import are_distinct, are_shares, has_structure_of_zeros, is_integer, is_symmetric, may_be_stressed

SHARE = 0.25
"""Of the rows of a tensor, and of its elements where it has one row or holds integers."""
MOSTLY = 0.75
"""So many rows of another tensor lie within the range of one that they are drawn alike."""
PARTS = ((True, True), (False, True), (True, False))
"""Which tensors take over what another holds, numbers and integers, from the first to the last that the reference
stands."""


@keeping_what_stays
def shared(
    inputs: Inputs, fixed: Collection[int], *, numbers: bool, integers: bool, share: float = SHARE
) -> tuple[Inputs, bool]:
    """The inputs with a `share` of the rows of tensors of numbers, along the last dimension, and of the elements of
    integers as an earlier tensor of the same shape and dtype has them in the same places, wherever the values lie
    within the range of the tensor's own; and whether any tensor took something over. Those in `fixed`, in the order of
    `leaves`, stay, and so does what is in order, symmetric, holds nothing twice or has a structure of zeros."""
    there: list[torch.Tensor] = []

    def make(tensor: torch.Tensor, before: list[torch.Tensor]) -> torch.Tensor:
        made = tensor
        if (integers if is_integer(tensor) else numbers) and _may_share(tensor):
            like = [each for each in there if _are_alike(each, tensor)]
            made = _with_some_of(like[-1], tensor, share) if like else tensor
        there.append(made)
        return made

    return with_each(inputs, fixed, make)


def _with_some_of(other: torch.Tensor, tensor: torch.Tensor, share: float) -> torch.Tensor:
    least, most = read(tensor.amin(), tensor.amax())
    fits = (other >= least) & (other <= most)
    chosen = fits if is_integer(tensor) or tensor.dim() < 2 else fits.all(-1, keepdim=True)
    if share == 1.0 and not is_integer(tensor):  # the few beyond are as likely in the tensor's own next draw
        chosen = chosen | (chosen.float().mean() > MOSTLY)
    chosen = chosen & (torch.rand(chosen.shape, device=tensor.device) < share)
    return as_agreed(torch.empty_like(tensor).copy_(torch.where(chosen, other, tensor)), tensor)


def _may_share(tensor: torch.Tensor) -> bool:
    if tensor.dim() < 1 or tensor.numel() < 2 or tensor.is_complex() or is_symmetric(tensor):
        return False
    if is_integer(tensor):
        steps = tensor.diff(dim=-1)
        return not bool((steps >= 0).all()) and not any(are_distinct(tensor, dim) for dim in range(tensor.dim()))
    return (may_be_stressed(tensor) or are_shares(tensor)) and not has_structure_of_zeros(tensor)


def _are_alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and one.device == other.device and one is not other
