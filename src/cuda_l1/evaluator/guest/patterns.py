"""What a tensor lets through: truth values, one of two numbers, numbers beside infinities, -1e9 or scattered zeros.

A mask is one whatever it is written in. Where the pattern is made another one, what is shut holds what stood for that
before, and what is newly open holds one of the numbers that were open, so that all values are those that are there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from .reading import once, read
from .tensors import extent
from .traits import (
    FEW_VALUES,
    MANY_ZEROS,
    has_numbers_beside,
    has_structure_of_zeros,
    holds_zeros,
    is_one_hot,
    is_outside,
    may_be_stressed,
    outside,
    sampled,
)

SOME = 4096
"""Elements among which those that hold more than two values are told."""
CORNER = 8
"""Elements along each dimension by which columns of numbers are told from flags, as far as they are."""
COLUMNS = 64
"""The most columns of a table of which some are looked for that hold flags."""


@dataclass(frozen=True)
class Pattern:
    """Of one tensor."""

    open: torch.Tensor
    """bool, of its shape."""
    shut: float
    """What stands where it is not."""

    def put(self, tensor: torch.Tensor, made: torch.Tensor) -> torch.Tensor:
        """`tensor` with the pattern `made`, laid out as it was; itself where that is its own."""
        if torch.equal(made, self.open):
            return tensor
        if tensor.dtype is torch.bool:
            return torch.empty_like(tensor).copy_(made)
        given = tensor[self.open]
        if given.numel() == 0:
            return tensor
        new, result = made & ~self.open, tensor.clone(memory_format=torch.preserve_format)
        result[new] = given[torch.randint(given.numel(), (int(new.sum()),), device=tensor.device)]
        return result.masked_fill_(self.open & ~made, self.shut)


def pattern_of(tensor: torch.Tensor) -> Pattern | None:
    """None where it holds numbers, choices or places, or has a structure of zeros that a kernel may rely on."""
    if tensor.dtype is torch.bool:
        return Pattern(tensor, 0.0)
    floating = tensor.is_floating_point() or tensor.is_complex()
    if not floating or tensor.dtype.itemsize < 2 or tensor.numel() < 2 or tensor.numel() != extent(tensor):
        return None
    if (ends := _two_values(tensor)) is not None:
        return None if is_one_hot(tensor) else Pattern(tensor != ends[0], ends[0])
    if has_numbers_beside(tensor):
        beside = outside(tensor)
        return Pattern(~is_outside(tensor), beside[0]) if len(beside) == 1 else None
    if may_be_stressed(tensor) and holds_zeros(tensor) and not has_structure_of_zeros(tensor):
        return Pattern(tensor != 0, 0.0)
    return None


def _two_values(tensor: torch.Tensor) -> tuple[float, float] | None:
    """What stands for shut, and the other, where there are no more. Few elements are a mask where the one is zero."""
    some = sampled(tensor)[:SOME]
    if torch.unique(torch.view_as_real(some) if tensor.is_complex() else some).numel() > 2:
        return None
    if tensor.is_complex():
        zeros = tensor == 0
        others = tensor[~zeros]
        return (0.0, 1.0) if 0 < len(others) < tensor.numel() and bool((others == others[0]).all()) else None
    least, most = read(tensor.amin(), tensor.amax())
    if least == most or not bool(((tensor == least) | (tensor == most)).all()):
        return None
    if most == math.inf:
        least, most = most, least
    return (least, most) if least == 0.0 or math.isinf(least) or tensor.numel() > 4 * FEW_VALUES else None


@once
def flag_columns(tensor: torch.Tensor) -> list[tuple[slice | int, ...]]:
    """Where a table of numbers, (.., few columns) or (samples, few channels, ..), holds flags among its columns: zeros
    and ones and nothing else, as no column of numbers does. Nothing but zeros, where others are zero too, are a
    structure of zeros."""
    for dim in (tensor.dim() - 1, *[1] * (tensor.dim() > 2)):
        if tensor.dim() < 2 or not 1 < tensor.shape[dim] <= COLUMNS:
            continue
        columns = tensor.movedim(dim, 0)
        if not bool(_hold_flags(_corner(columns)).any()) or not may_be_stressed(tensor):
            continue
        zeros, flags = (columns == 0).flatten(1), _hold_flags(columns)
        blank = zeros.all(1)
        if bool(zeros[~blank].float().mean() > MANY_ZEROS) or int(blank.sum()) > 1:
            flags &= ~blank
        if bool(flags.any()) and not bool(flags.all()):
            return [(*[slice(None)] * dim, at) for at in flags.nonzero().flatten().tolist()]
    return []


def _hold_flags(columns: torch.Tensor) -> torch.Tensor:
    """Of each along the first dimension."""
    return ((columns == 0) | (columns == 1)).flatten(1).all(1)


def _corner(columns: torch.Tensor) -> torch.Tensor:
    """A few elements of each: of large tensors a look at all takes as long as many a call."""
    for dim in range(1, columns.dim()):
        columns = columns.narrow(dim, 0, min(CORNER, columns.shape[dim]))
    return columns
