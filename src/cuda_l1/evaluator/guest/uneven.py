"""Inputs that are uneven where independent draws are even: one choice almost everywhere, masks and flags that let all
through or next to nothing, rows without a zero, samples of one sign.

A thousand tokens dealt to sixteen experts by chance leave none with twice its share, a random mask never lets a whole
row through, and no sample of independent numbers has one sign. Who makes room, counters or a branch for no more than
that is right for all that a task draws. Values are those that are there, in places whose range they have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

import torch

from .agreed import as_agreed, in_order_still, keeping_what_stays, with_each
from .drawing import Inputs
from .entropy import ENTROPY
from .patterns import Pattern, flag_columns, pattern_of
from .reference import Reference
from .tensors import as_real, leaves
from .traits import (
    are_distinct,
    has_structure_of_zeros,
    holds_both_signs,
    is_integer,
    is_mask,
    is_one_hot,
    is_symmetric,
    may_be_stressed,
)

PARTS = ((True, True, True), (True, True, False), (False, True, False), (True, False, False))
"""What becomes uneven, from the first to the last that the reference stands: numbers, what selects, and whether masks
let next to nothing through, too."""
LEAST = 8
"""Elements of a row in which anything can be called uneven."""
HELD = 0.9
"""The share of a row that holds one value."""
WHOLE = 0.5
"""The share of such rows that hold nothing else, so that all other values are absent; the first of them always does."""
IN_A_ROW = 0.8
"""The rest up to this share hold it in one stretch from an end on."""
HELD_FROM = 4.0
"""Magnitudes from which a gate among the inputs is open or shut."""
FROM_ZERO = 0.25
"""The share of their mean magnitude below which no number of one sign is."""
MANY = 16
"""Samples of which four may be held."""


def uneven(
    inputs: Inputs,
    fixed: Collection[int],
    counted: Callable[[], Collection[int]] = tuple,
    *,
    numbers: bool,
    places: bool,
    shut: bool,
) -> tuple[Inputs, bool]:
    """The inputs with half of the rows of integers, and of floating numbers of few values, holding one value in nine of
    ten places or in all; half of the rows of patterns (`patterns`) letting everything through, or nearly everything,
    and with `shut` nothing, from an end on or in nine of ten places (both with `places`); a quarter of the samples
    without negative numbers and a quarter without positive ones, of complex numbers a quarter real (`numbers`); and
    whether there was such a tensor. Those that are the same in every draw (`fixed`, in the order of `leaves`) stay: a
    kernel may rely on what they are made of. So do single masks that let as many through in every draw, which `counted`
    tells where there is a single one."""
    sizes = {size for tensor in leaves(inputs) for size in tensor.shape}
    single = {index: tensor for index, tensor in enumerate(leaves(inputs)) if places and _counts(tensor)}
    kept = [single[index] for index in (counted() if single else ()) if index in single]

    def make(tensor: torch.Tensor, before: list[torch.Tensor]) -> torch.Tensor:
        made = tensor
        if numbers:
            ((made,), _) = _with_signs([tensor])
        if places and is_integer(tensor):
            return _crowded(tensor, sizes)
        if not places or any(tensor is each for each in kept):
            return made
        if (pattern := pattern_of(tensor)) is not None:
            return _with_uneven_rows(pattern, made, shut)
        return _crowded(made, sizes) if is_mask(tensor) else _with_uneven_flags(made, tensor, shut)

    made, found = with_each(inputs, fixed, make)
    return in_order_still(made, inputs), found


DRAWS = 5
"""Among which a mask lets as many through each time by no chance."""


def counted(reference: Reference) -> frozenset[int]:
    """Which tensors, in the order of `leaves`, have single masks that let as many through in every draw."""
    first = [_counts(tensor) for tensor in leaves(reference.draw())]
    alike = {index for index, counts in enumerate(first) if counts}
    for _ in range(DRAWS - 1):
        if not alike:
            break
        drawn = leaves(reference.draw())
        alike = {index for index in alike if _counts(drawn[index]) == first[index]}
    return frozenset(alike)


def _counts(tensor: torch.Tensor) -> list[int]:
    """How many a mask of one row, and each column of flags, lets through; empty for all others."""
    if tensor.dim() < 1 or is_integer(tensor):
        return []
    if tensor.shape[-1] == tensor.numel():
        pattern = pattern_of(tensor)
        return [int(pattern.open.sum())] if pattern is not None else []
    return [int((tensor[at] != 0).sum()) for at in flag_columns(tensor)]


def _with_uneven_flags(made: torch.Tensor, drawn: torch.Tensor, shut: bool) -> torch.Tensor:
    """A column of flags among numbers that sets all of them, or nearly all or none."""
    columns = flag_columns(drawn)
    if not columns:
        return made
    made = made.clone(memory_format=torch.preserve_format)
    for at in columns:
        flags = drawn[at] != 0
        made[at] = _uneven_rows(flags.reshape(1, -1), shut).view(flags.shape).to(made.dtype)
    return made


def _half(count: int, like: torch.Tensor) -> torch.Tensor:
    """True for one of two, and for one at the least."""
    chosen = torch.rand(count, device=like.device) < 0.5
    chosen[torch.randint(count, (1,), device=like.device)] = True
    return chosen


def _crowded(tensor: torch.Tensor, sizes: Collection[int]) -> torch.Tensor:
    """Rows along the longest dimension, since what lies beside it may have ranges of its own. What is in order, holds
    nothing twice (a permutation, the best of some) or adds up to the size of something (lengths) stays."""
    if tensor.dim() < 1 or is_symmetric(tensor) or any(are_distinct(tensor, dim) for dim in range(tensor.dim())):
        return tensor
    longest = max(range(tensor.dim()), key=lambda dim: (tensor.shape[dim], dim))
    if tensor.shape[longest] < LEAST:
        return tensor
    turned = tensor.movedim(longest, -1)
    rows = turned.reshape(-1, turned.shape[-1])
    steps = rows.diff(dim=-1)
    kept = (steps >= 0).all(-1) | (steps <= 0).all(-1)
    if is_integer(tensor) and int(rows[0].sum()) in sizes:
        kept[:] = True
    chosen = _half(len(rows), rows) & ~kept
    if not bool(chosen.any()):
        return tensor
    ends = torch.stack([rows.amin(-1), rows.amax(-1)], -1)
    one = ends.gather(-1, torch.randint(2, (len(rows), 1), device=rows.device))  # an end: counts and sums are largest
    lot = torch.rand(len(rows), 1, device=rows.device)
    lot[int(chosen.nonzero()[0])] = 0.0
    scattered = torch.rand(rows.shape, device=rows.device) < HELD
    in_a_row = _long_ends(len(rows), rows.shape[-1], rows.device)
    held = chosen.unsqueeze(-1) & ((lot < WHOLE) | torch.where(lot < IN_A_ROW, in_a_row, scattered))
    made = torch.where(held, one, rows).view(turned.shape).movedim(-1, longest)
    return torch.empty_like(tensor).copy_(made)


def _long_ends(count: int, length: int, device: torch.device) -> torch.Tensor:
    """True up to a place in the second half of each row, or from one in the first half on: what is looked for beyond
    comes late, and what comes last is early."""
    at = torch.arange(length, device=device)
    reach = 0.5 + 0.5 * torch.rand(count, 1, device=device)
    from_start = torch.rand(count, 1, device=device) < 0.5
    return torch.where(from_start, at < reach * length, at >= (1 - reach) * length)


def _with_uneven_rows(pattern: Pattern, tensor: torch.Tensor, shut: bool) -> torch.Tensor:
    """One whose rows all let as many through has them chosen, and stays. A row lies along the last dimension, of few
    columns along the first."""
    is_open = pattern.open
    if is_open.dim() < 1 or is_one_hot(is_open) or is_symmetric(is_open):
        return tensor
    turned = is_open if is_open.shape[-1] >= LEAST or is_open.dim() < 2 else is_open.movedim(0, -1)
    if turned.shape[-1] < LEAST:
        return tensor
    rows = turned.reshape(-1, turned.shape[-1])
    counts = rows.sum(-1)
    if len(rows) > 1 and bool((counts == counts[0]).all()):
        return tensor
    made = _uneven_rows(rows, shut).view(turned.shape)
    return pattern.put(tensor, made if turned is is_open else made.movedim(-1, 0))


def _uneven_rows(rows: torch.Tensor, shut: bool) -> torch.Tensor:
    """Of truth values: half of them true everywhere, or nearly so, or with `shut` false, though not false alone."""
    count, length = rows.shape
    lot = torch.rand(count, 1, device=rows.device)
    chosen = _half(count, rows)
    lot[int(chosen.nonzero()[0])] = 0.0
    scattered = torch.rand(rows.shape, device=rows.device) < HELD
    held = (lot < WHOLE) | torch.where(lot < IN_A_ROW, _long_ends(count, length, rows.device), scattered)
    is_true = (lot < WHOLE) | (torch.rand(count, 1, device=rows.device) < (0.5 if shut else 1.0))
    made = torch.where(chosen.unsqueeze(-1) & held, is_true, rows)
    return torch.where(made.any(-1, keepdim=True), made, rows)


@keeping_what_stays
def held(inputs: Inputs, *, beside: bool = False) -> tuple[Inputs, bool]:
    """The inputs with a sample of either sign, none of it below `HELD_FROM` in magnitude, one of them in all, as gates
    are that stay open or shut, and the other from a place in its first half on, or up to one in its second; of `MANY`
    samples two of either sign; and whether there was a tensor of numbers of both signs. What comes long before is
    remembered. The same in all tensors: whoever looks at some samples, or at a part of each, to see whether inputs are
    ordinary hardly sees them. A structure of zeros stays. `beside`: samples lie along the second dimension, as where
    that of time comes first; only of tensors where the first is long enough for that."""
    sign = ENTROPY.choice((-1.0, 1.0))
    late, early = (ENTROPY.uniform(0.125, 0.5), 1.0), (0.0, ENTROPY.uniform(0.5, 0.875))
    part = ENTROPY.choice((late, late, early))
    stretches = ((sign, (0.0, 1.0)), (-sign, part), (-sign, (0.0, 1.0)), (sign, part))
    lots = [ENTROPY.random() for _ in stretches]

    def make(tensor: torch.Tensor, before: list[torch.Tensor]) -> torch.Tensor:
        if not may_be_stressed(tensor) or not _has_both_signs(tensor):
            return tensor
        if beside and not _may_begin_with_time(tensor.shape):
            return tensor
        made = tensor.clone(memory_format=torch.preserve_format)
        samples = made.transpose(0, 1) if beside else made
        left = list(range(len(samples)))
        for lot, (towards, (begin, end)) in list(zip(lots, stretches, strict=True))[: 4 if len(left) >= MANY else 2]:
            place = left.pop(int(lot * len(left)))
            numbers = samples[place].flatten().clone()
            stretch = as_real(numbers)[int(begin * len(numbers)) : math.ceil(end * len(numbers))]
            stretch.copy_(towards * (HELD_FROM + stretch.abs()))
            samples[place] = numbers.view(samples[place].shape)
        made = made.masked_fill_(tensor == 0, 0) if has_structure_of_zeros(tensor) else made
        return as_agreed(made, tensor)

    return with_each(inputs, (), make)


def _may_begin_with_time(shape: torch.Size) -> bool:
    """Of a table, which has no third dimension, only where there are more steps than samples."""
    return shape[0] >= LEAST and shape[1] > 1 and (len(shape) > 2 or shape[0] >= shape[1])


def _has_both_signs(tensor: torch.Tensor) -> bool:
    """Whether it holds several samples, and in them numbers of both signs."""
    return tensor.dim() > 1 and len(tensor) > 1 and holds_both_signs(tensor)


@keeping_what_stays
def of_one_sign(inputs: Inputs, sign: float) -> tuple[Inputs, bool]:
    """The inputs with all numbers of tensors that hold both signs of one, -1.0 or 1.0, none of them near zero, of
    complex ones both parts; and whether there was such a tensor. The largest of many independent numbers is never
    negative, and all of them are never positive. A structure of zeros stays."""

    def make(tensor: torch.Tensor, before: list[torch.Tensor]) -> torch.Tensor:
        if not (may_be_stressed(tensor) and holds_both_signs(tensor)):
            return tensor
        made = tensor.clone(memory_format=torch.preserve_format)
        parts = as_real(made)
        size = parts.abs()
        parts.copy_(sign * (size + FROM_ZERO * (size.mean() - size)))
        made = made.masked_fill_(tensor == 0, 0) if has_structure_of_zeros(tensor) else made
        return as_agreed(made, tensor)

    return with_each(inputs, (), make)


@keeping_what_stays
def _with_signs(inputs: Inputs) -> tuple[Inputs, bool]:
    return with_each(inputs, (), lambda tensor, _: _of_one_sign(tensor) if may_be_stressed(tensor) else tensor)


def _of_one_sign(tensor: torch.Tensor) -> torch.Tensor:
    """Samples lie along the first dimension. Of complex numbers both parts are of one sign, or the second is zero."""
    if not _has_both_signs(tensor):
        return tensor
    lot = torch.randint(4, (len(tensor),), device=tensor.device)
    ways = min(3 if tensor.is_complex() else 2, len(tensor))
    lot[torch.randperm(len(tensor), device=tensor.device)[:ways]] = torch.arange(ways, device=tensor.device)
    made = tensor.clone(memory_format=torch.preserve_format)
    parts = as_real(made)
    size, lot = parts.abs(), lot.view(-1, *[1] * (parts.dim() - 1))
    parts.copy_(torch.where(lot == 0, size, torch.where(lot == 1, -size, parts)))
    if tensor.is_complex():
        parts[..., 1].masked_fill_(lot[..., 0] == 2, 0)
    return as_agreed(made, tensor)
