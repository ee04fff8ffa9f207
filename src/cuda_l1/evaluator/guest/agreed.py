"""What a kernel may rely on stays in inputs of the judge's making: order, symmetry, infinities, a triangle of zeros."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Concatenate, ParamSpec

import torch

from .drawing import Inputs
from .reading import read
from .tensors import extent, leaves, overlaps, with_leaves
from .traits import (
    LEAST_SORTED,
    columns_in_order,
    has_numbers_beside,
    has_structure_of_zeros,
    holds_zeros,
    is_in_order,
    is_outside,
    is_positive_definite,
    is_symmetric,
    look_at,
    tensors_in_order,
)

Args = ParamSpec("Args")


def keeping_what_stays(
    make: Callable[Concatenate[Inputs, Args], tuple[Inputs, bool]],
) -> Callable[Concatenate[Inputs, Args], tuple[Inputs, bool]]:
    """`make` of numbers as a kernel may rely on them: infinities stay where they are, while the others are made as they
    would be without, and of two tensors the one that is nowhere above the other stays below it: ends of spans."""

    @functools.wraps(make)
    def kept(inputs: Inputs, /, *args: Args.args, **kwargs: Args.kwargs) -> tuple[Inputs, bool]:
        drawn = leaves(inputs)
        look_at(drawn)
        finite = [without_infinities(t) for t in drawn]
        made, found = make(with_leaves(inputs, finite), *args, **kwargs)
        trios = zip(leaves(made), finite, drawn, strict=True)
        beside = [own if now is was else now if was is own else _as_far_as_finite(now, own) for now, was, own in trios]
        return in_order_still(with_leaves(inputs, beside), inputs), found

    return kept


def in_order_still(made: Inputs, drawn: Inputs) -> Inputs:
    """`made`, of two tensors of which one is nowhere above the other in `drawn` the lower numbers in that one."""
    before, now = leaves(drawn), leaves(made)
    for low, high in tensors_in_order(before):  # one pass is enough: the lowest have their turn first
        if now[low] is not before[low] or now[high] is not before[high]:
            ends = torch.minimum(now[low], now[high]), torch.maximum(now[low], now[high])
            now[low], now[high] = (torch.empty_like(before[low]).copy_(end) for end in ends)
    other: Inputs = with_leaves(made, now)
    return other


def without_gaps(tensor: torch.Tensor) -> torch.Tensor:
    """A dense copy of a tensor between whose elements others may lie, as of a slice of a larger one; itself where there
    are none, or where elements share memory."""
    return tensor if tensor.numel() == extent(tensor) or overlaps(tensor) else tensor.contiguous()


def filling_gaps(make: Callable[[Inputs], tuple[Inputs, bool]]) -> Callable[[Inputs], tuple[Inputs, bool]]:
    """`make` of dense tensors, and of those with gaps between their elements as if they had none, laid out as they
    were: who is given slices is given the same numbers."""

    @functools.wraps(make)
    def filled(inputs: Inputs) -> tuple[Inputs, bool]:
        drawn = leaves(inputs)
        dense = [without_gaps(tensor) for tensor in drawn]
        made, found = make(with_leaves(inputs, dense))
        trios = zip(leaves(made), dense, drawn, strict=True)
        return with_leaves(inputs, [own if now is was else _laid_as(own, now) for now, was, own in trios]), found

    return filled


def _laid_as(drawn: torch.Tensor, made: torch.Tensor) -> torch.Tensor:
    if made.stride() == drawn.stride() or overlaps(drawn):
        return made
    return torch.as_strided(made.new_zeros(extent(drawn)), drawn.shape, drawn.stride()).copy_(made)


def without_infinities(tensor: torch.Tensor) -> torch.Tensor:
    """Numbers with the largest and the smallest of them for infinities and what else stands for nothing, so that their
    order stays; others, and masks that are added, as they are."""
    if tensor.numel() != extent(tensor) or not has_numbers_beside(tensor):
        return tensor
    is_number = ~is_outside(tensor)
    is_finite = is_number & torch.isfinite(tensor)
    ends = torch.where(is_finite, tensor, -torch.inf).amax(), torch.where(is_finite, tensor, torch.inf).amin()
    most, least = read(*ends)
    return torch.where(is_number, tensor, tensor.clamp(least, most))


def _as_far_as_finite(made: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(drawn).copy_(torch.where(is_outside(drawn), drawn, made))


def with_each(
    inputs: Inputs, fixed: Collection[int], make: Callable[[torch.Tensor, list[torch.Tensor]], torch.Tensor]
) -> tuple[Inputs, bool]:
    """The inputs with what `make` gives for each dense tensor and those before it; and whether that is another one
    anywhere. Those in `fixed`, in the order of `leaves`, stay."""
    tensors = leaves(inputs)
    made = [
        tensor if index in fixed or tensor.numel() != extent(tensor) else make(tensor, tensors[:index])
        for index, tensor in enumerate(tensors)
    ]
    found = any(now is not was for now, was in zip(made, tensors, strict=True))
    return with_leaves(inputs, made), found


def with_structure_of(tensor: torch.Tensor, made: torch.Tensor) -> torch.Tensor:
    """`made` with the zeros of `tensor`, in place, unless these lie anywhere."""
    free = holds_zeros(tensor) and not has_structure_of_zeros(tensor)
    return made if free else made.masked_fill_(tensor == 0, 0)


def as_agreed(made: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
    """`made`, in order along its last dimension, as a whole or from column to column, symmetric or positive definite
    where `drawn` is so: boundaries, corners of boxes and such matrices are what a kernel may rely on. In place; `made`
    is a tensor of the judge's own."""
    if drawn.dim() < 1 or drawn.is_complex() or drawn.numel() != extent(drawn):
        return made
    if drawn.shape[-1] >= LEAST_SORTED and is_in_order(drawn):
        if bool((drawn[..., -1] > drawn[..., 0]).all()):
            made.copy_(made.sort(dim=-1).values)
    elif is_symmetric(drawn):
        _made_symmetric(made, drawn)
        if is_positive_definite(drawn):
            _made_definite(made, drawn)
    elif is_positive_definite(drawn):  # as a product that its matrix multiplication rounds here so and there so
        _made_definite(_made_symmetric(made, drawn), drawn)
    for low, high in columns_in_order(drawn):  # one pass is enough: the lowest have their turn first
        least, most = torch.minimum(made[..., low], made[..., high]), torch.maximum(made[..., low], made[..., high])
        made[..., low], made[..., high] = least, most
    return made


def _made_symmetric(made: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
    either = torch.where(made != drawn, made, made.mT)  # of two that stand for each other one may be changed
    return made.copy_(either.tril() + either.tril(-1).mT)


def _made_definite(made: torch.Tensor, drawn: torch.Tensor) -> None:
    """Positive definite as `drawn` is: what is changed beside the diagonal stays so, and the diagonal outweighs it, row
    by row. As drawn where the dtype does not hold that."""
    if is_positive_definite(made):
        return
    changes = (made.double() - drawn.double()).abs()
    changes.diagonal(dim1=-2, dim2=-1).zero_()
    least = drawn.diagonal(dim1=-2, dim2=-1) + changes.sum(-1) * (1 + 4 * torch.finfo(made.dtype).eps)
    diagonal = made.diagonal(dim1=-2, dim2=-1)
    diagonal.copy_(torch.maximum(diagonal.double(), least))
    if not is_positive_definite(made):
        made.copy_(drawn)
