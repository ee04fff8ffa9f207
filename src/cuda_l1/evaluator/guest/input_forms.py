"""Inputs of the judge's making, out of drawn ones: stressed, mixed, related, emptied, what no draw shows.

What a kernel may rely on (order, symmetry, shares of one) stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

import torch

from .agreed import as_agreed, in_order_still, keeping_what_stays, with_each, with_structure_of, without_infinities
from .drawing import Inputs
from .entropy import ENTROPY
from .patterns import flag_columns, pattern_of
from .places import MIXED_SHARE, element_indices, some_places
from .reading import hosted, read
from .tensors import as_real, extent, leaves, map_leaves, with_leaves
from .traits import (
    LEAST_SHARE,
    LEAST_SORTED,
    are_distinct,
    are_shares,
    columns_in_order,
    has_structure_of_zeros,
    holds_both_signs,
    is_constant,
    is_in_order,
    is_integer,
    is_mask,
    is_outside,
    is_positive_definite,
    is_symmetric,
    may_be_stressed,
)

Make = Callable[[Inputs], tuple[Inputs, bool]]
"""Makes other inputs of drawn ones, and says whether there was anything to change."""


FAMILIES = 4
"""Of related rows."""
LARGEST = 0.75
"""The share of rows that are of the first one in any case: what is routed by them goes one way, nearly all of it."""

APART = (1 / 16, 1 / 2)
"""How far related rows lie from that which stands for their family, in parts of what they were, from the first to the
last that the reference stands."""

MIXTURES = ((-1.0, 0.0), (-1.0,), (0.0,))
"""By which some elements are multiplied in the trial `mixed`, from the first to the last that the reference stands."""

NEAR_ONE = 0.01
"""Standard deviation of magnitudes: the logarithm of a product of 4,000 has one of 0.63, about -0.2."""
LEVEL = 0.5
"""No whole number, which rounding does not move, so that what it may make of equal ones is known."""


@keeping_what_stays
def stress(inputs: Inputs, factor: float) -> tuple[Inputs, bool]:
    """The inputs with every stressable tensor multiplied, strides kept, and whether there was one.

    Shares of one are made smaller only, and not by far: larger ones can be refused by functions of probabilities.
    """

    def is_scaled(tensor: torch.Tensor) -> bool:
        return may_be_stressed(tensor) or (LEAST_SHARE <= factor < 1 and are_shares(tensor))

    found = any(is_scaled(t) for t in leaves(inputs))
    return map_leaves(inputs, lambda t: _scaled(t, factor) if is_scaled(t) else t), found


TOUCHED, SWAPPED = 3, 32
"""Elements of a tensor of numbers that become others in `touched` and `with_outliers`, and those of a mask that change
places."""

OTHERS = tuple((count, factor) for count in (SWAPPED, TOUCHED, 1) for factor in (-0.5, 0.5))
"""How many elements of a constant are exchanged and by what a single number is multiplied, from the first to the last
that the reference stands."""


@keeping_what_stays
def touched(inputs: Inputs, other: Inputs) -> tuple[Inputs, bool]:
    """The inputs with a few elements of every stressable tensor as in `other`, and whether there was one."""
    return _exchanged(inputs, other, 1.0), any(may_be_stressed(t) for t in leaves(inputs))


@keeping_what_stays
def with_outliers(inputs: Inputs, other: Inputs, factor: float) -> tuple[Inputs, bool]:
    """The inputs with a few elements of every stressable tensor as in `other`, times `factor`, and a few elements of
    every mask in each other's places; and whether there was such a tensor. What is drawn from a distribution has no
    outliers and a mask is often the same in every draw: what is done to them would never be seen."""
    exchanged = _exchanged(inputs, other, factor)
    found = any(may_be_stressed(t) or is_mask(t) for t in leaves(inputs))
    return map_leaves(exchanged, lambda t: _swapped(t) if is_mask(t) else t), found


@keeping_what_stays
def mixed(inputs: Inputs, factors: Sequence[float]) -> tuple[Inputs, bool]:
    """The inputs with one element in eight of every stressable tensor times the first of `factors`, one times the next,
    and whether there was one. Draws of one sign let the magnitude of a sum stand for a sum of magnitudes; draws without
    zeros hide what is done to them."""
    found = any(may_be_stressed(t) for t in leaves(inputs))
    return map_leaves(inputs, lambda t: _blended(t, factors) if may_be_stressed(t) else t), found


ISOLATED_FACTORS = ((-1e3, 1e3), (1e3,), (-1e3,), (-8.0, 8.0), (8.0,), (-8.0,))
"""What single elements are in the trial `isolated`, in magnitudes of a large one, from the first to the last that the
reference stands."""
LOOKED_AT = 256
"""Elements among which those are chosen, and of which the largest is a large one."""


def isolated(inputs: Inputs, factors: Sequence[float]) -> tuple[Inputs, bool]:
    """The inputs with one element of every stressable tensor at each of `factors` times the magnitude of a large one,
    and whether there was such a tensor. One each: whoever looks at a sample of the inputs sees one of six more often
    than one of two. Zeros and what stands for nothing stay."""

    def holds_numbers(tensor: torch.Tensor) -> bool:
        return may_be_stressed(without_infinities(tensor))

    found = any(map(holds_numbers, leaves(inputs)))
    made = map_leaves(inputs, lambda t: _with_isolated(t, factors) if holds_numbers(t) else t)
    return in_order_still(made, inputs), found


def _with_isolated(tensor: torch.Tensor, factors: Sequence[float]) -> torch.Tensor:
    looked_at = torch.randint(tensor.numel(), (LOOKED_AT,), device=tensor.device)
    at = element_indices(looked_at, tensor.shape)
    numbers = tensor[at]
    is_number = (numbers != 0) & torch.isfinite(numbers) & ~is_outside(tensor)[at]
    looked_at, sizes, is_number = hosted([looked_at, numbers.abs(), is_number])
    places, sizes = looked_at[is_number], sizes[is_number]
    flat = torch.as_strided(tensor, (extent(tensor),), (1,), tensor.storage_offset()).clone()
    made = torch.as_strided(flat, tensor.shape, tensor.stride())
    chosen = list(zip(reversed(factors), places, strict=False))
    for factor, place in reversed(chosen):  # the positive one is there, also where both are one place
        size = sizes.amax() * factor
        at = element_indices(place, tensor.shape)
        made[at] = (size * tensor[at].sgn() if tensor.is_complex() else size).to(tensor.dtype)
    return as_agreed(made, tensor)


def _blended(tensor: torch.Tensor, factors: Sequence[float]) -> torch.Tensor:
    flat = torch.as_strided(tensor, (extent(tensor),), (1,), tensor.storage_offset())
    lot = torch.randint(MIXED_SHARE, flat.shape, device=tensor.device, dtype=torch.uint8)
    for number, factor in enumerate(factors):
        other = flat * factor + 0.0  # no negative zero
        flat = torch.where(lot == number, other * 1j if tensor.is_complex() else other, flat)
    if tensor.is_complex():
        for number, part in enumerate((1, 0), start=len(factors)):
            as_real(flat)[..., part].masked_fill_(lot == number, 0)
    return as_agreed(torch.as_strided(flat, tensor.shape, tensor.stride()), tensor)


@keeping_what_stays
def related(inputs: Inputs, apart: float) -> tuple[Inputs, bool]:
    """The inputs with rows, along the last dimension, of a few families, most of them of one: each is one of `FAMILIES`
    rows plus `apart` of what it was, and rows of one length share them from tensor to tensor; and whether there was a
    tensor of rows that could be changed. Zeros stay: a kernel may rely on a triangle of them."""
    heads: dict[tuple[int, torch.dtype], torch.Tensor] = {}

    def of_families(tensor: torch.Tensor) -> torch.Tensor:
        rows = tensor.numel() // max(1, tensor.shape[-1]) if tensor.dim() > 1 else 0
        if rows <= FAMILIES or not may_be_stressed(tensor) or tensor.numel() != extent(tensor) or is_symmetric(tensor):
            return tensor
        key = tensor.shape[-1], tensor.dtype
        if key not in heads:
            heads[key] = tensor.reshape(rows, -1)[torch.randperm(rows, device=tensor.device)[:FAMILIES]]
        family = torch.randint(FAMILIES, tensor.shape[:-1], device=tensor.device)
        family.masked_fill_(torch.rand(family.shape, device=tensor.device) < LARGEST, 0)
        made = torch.empty_like(tensor).copy_(tensor * apart + heads[key][family])
        return as_agreed(with_structure_of(tensor, made), tensor)

    made = map_leaves(inputs, of_families)
    return made, bool(heads)


LEAST_SAMPLES, SAMPLES, VALUES = 4, 2, 8
"""Samples of which some stand for all in `repeated`, how many do, and from how many numbers the elements are then."""


def repeated(inputs: Inputs, fixed: Collection[int], *, values: bool) -> tuple[Inputs, bool]:
    """The inputs with `SAMPLES` samples that stand for all, at random places that are the same in every tensor of as
    many, and where `values` with the elements of each tensor of numbers or choices taken from `VALUES` of its own; and
    whether there was a tensor of samples. Those in `fixed`, in the order of `leaves`, stay, and so does what holds
    nothing twice: a kernel may rely on a permutation."""
    chosen: dict[int, torch.Tensor] = {}

    def make(tensor: torch.Tensor, before: list[torch.Tensor]) -> torch.Tensor:
        dim = next((d for d, size in enumerate(tensor.shape) if size >= LEAST_SAMPLES), None)
        is_distinct = is_integer(tensor) and any(are_distinct(tensor, d) for d in range(tensor.dim()))
        if dim is None or is_symmetric(tensor) or (is_distinct and tensor.dim() == 1):
            return tensor
        made, device, size = tensor, tensor.device, tensor.shape[dim]
        if values and ((is_integer(tensor) and not is_distinct) or may_be_stressed(tensor)):
            own = tensor.flatten()[torch.randint(tensor.numel(), (VALUES,), device=device)]
            made = own[torch.randint(VALUES, tensor.shape, device=device)]
        if size not in chosen:
            chosen[size] = torch.randperm(size, device=device)[torch.randint(SAMPLES, (size,), device=device)]
        return as_agreed(torch.empty_like(tensor).copy_(made.index_select(dim, chosen[size].to(device))), tensor)

    return with_each(inputs, fixed, make)


CLUSTER, LEAST_WIDTH = 16, 64
"""Elements or rows that form a cluster, and how many a dimension has at the least where there is to be one."""

LARGER = (8.0, 2.0)
"""By which clusters are multiplied, from the first to the last that the reference stands."""


@keeping_what_stays
def clustered(inputs: Inputs, factor: float) -> tuple[Inputs, bool]:
    """The inputs with up to `CLUSTER` elements of every row, along the last dimension, of one sign and times `factor`,
    in order of their size, and twice as many rows, along the one before it, times `factor`; and whether there was such
    a row. Half of them lie beside one another, half a power of two apart, and what ends goes on at its beginning.
    Independent numbers spread their largest ones evenly over any parts of a row, of which each can then be taken to
    hold few. Zeros stay: a kernel may rely on a triangle of them."""

    def is_long(tensor: torch.Tensor) -> bool:
        dense = tensor.dim() > 0 and max(tensor.shape[-2:]) >= LEAST_WIDTH and tensor.numel() == extent(tensor)
        return dense and may_be_stressed(tensor)

    def of_clusters(tensor: torch.Tensor) -> torch.Tensor:
        made = tensor.clone(memory_format=torch.preserve_format)
        if tensor.shape[-1] >= LEAST_WIDTH:
            places = _near_one_another(tensor.shape[:-1], tensor.shape[-1], tensor.device, beside=0.5)
            signs: torch.Tensor = torch.ones_like(places[..., :1])
            if tensor.is_complex():
                signs = tensor[..., :1].sgn()
            elif bool((tensor < 0).any()):
                signs = torch.where(torch.rand(signs.shape, device=signs.device) < 0.5, -signs, signs)
            sizes = tensor.gather(-1, places).abs().sort(dim=-1).values
            made.scatter_(-1, places, (sizes * signs * factor).to(tensor.dtype))
        if tensor.dim() > 1 and tensor.shape[-2] >= LEAST_WIDTH:
            shape, count = tensor.shape[:-2], tensor.shape[-2]
            runs = [_near_one_another(shape, count, tensor.device, beside=share) for share in (1.0, 0.0)]
            rows = torch.cat(runs, -1).unsqueeze(-1)
            rows = rows.expand(*rows.shape[:-1], tensor.shape[-1])
            made.scatter_(-2, rows, made.gather(-2, rows) * factor)
        return as_agreed(with_structure_of(tensor, made), tensor)

    found = any(is_long(t) for t in leaves(inputs))
    return map_leaves(inputs, lambda t: of_clusters(t) if is_long(t) else t), found


def _near_one_another(shape: Sequence[int], count: int, device: torch.device, *, beside: float) -> torch.Tensor:
    """`CLUSTER` places of `count` for each of `shape`, beside one another in the share `beside`, see `clustered`."""
    each = (*shape, 1)
    apart = 2 ** torch.randint((count // 4).bit_length(), each, device=device)
    apart = torch.where(torch.rand(each, device=device) < beside, 1, apart)
    return (torch.randint(count, each, device=device) + apart * torch.arange(CLUSTER, device=device)) % count


HOLDERS, LEAST_MANY = 8, 4096
"""In the trial `concentrated`, elements that hold almost all of a tensor, and how many it has at the least."""

HELD_POWERS = (1.0, 0.5, 0.0)
"""Each of these elements stands for n others, and is multiplied by n to one of these powers, from the first to the last
that the reference stands: with the first a mean stays about as large as it was."""


@keeping_what_stays
def concentrated(inputs: Inputs, power: float) -> tuple[Inputs, bool]:
    """The inputs with all but `HOLDERS` elements of every large tensor divided by how many there are for each of these,
    which are multiplied by a `power` of that; and whether there was such a tensor."""

    def is_large(tensor: torch.Tensor) -> bool:
        return may_be_stressed(tensor) and extent(tensor) >= LEAST_MANY

    def held_by_few(tensor: torch.Tensor) -> torch.Tensor:
        flat = torch.as_strided(tensor, (extent(tensor),), (1,), tensor.storage_offset())
        each = 2.0 ** (flat.numel() // HOLDERS).bit_length()
        made, places = flat / each, torch.randint(flat.numel(), (HOLDERS,), device=tensor.device)
        made[places] = flat[places] * each**power
        return as_agreed(torch.as_strided(made, tensor.shape, tensor.stride()), tensor)

    found = any(is_large(t) for t in leaves(inputs))
    return map_leaves(inputs, lambda t: held_by_few(t) if is_large(t) else t), found


LONGEST_ORDERED = 1 << 22
"""Elements of one row, at the most, that are put in order."""


@keeping_what_stays
def ordered(inputs: Inputs) -> tuple[Inputs, bool]:
    """The inputs with the numbers of one sample in `MIXED_SHARE`, the same ones in every tensor of as many, in order
    along every dimension, rising or falling, a tensor of one dimension as a whole; and whether there was such a tensor.
    Independent numbers lie scattered: no sign lasts, and what is large has nothing large beside it, as it has in
    images, series, ramps. What holds zeros stays: a kernel may rely on a triangle of them."""
    chosen: dict[int, torch.Tensor] = {}

    def holds_samples(tensor: torch.Tensor) -> bool:
        is_whole = tensor.numel() == extent(tensor) > 0
        is_row = tensor.dim() == 1 and LEAST_WIDTH <= tensor.numel() <= LONGEST_ORDERED
        return (
            is_whole and (tensor.dim() > 1 or is_row) and may_be_stressed(tensor) and not has_structure_of_zeros(tensor)
        )

    def in_order(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dim() == 1:
            return as_agreed(in_order(tensor.unsqueeze(0)).view(tensor.shape), tensor)
        count = len(tensor)
        if count not in chosen:
            chosen[count] = some_places((count,), count, tensor)
        dims, samples = list(range(1, tensor.dim())), tensor[chosen[count]]
        for dim in dims:
            samples = _in_order(samples, dim)
        falls = torch.rand([len(samples), *[1] * len(dims)], device=tensor.device) < 0.5
        made = tensor.clone(memory_format=torch.preserve_format)
        made[chosen[count]] = torch.where(falls, samples.flip(dims), samples)
        return as_agreed(made, tensor)

    found = any(map(holds_samples, leaves(inputs)))
    return map_leaves(inputs, lambda t: in_order(t) if holds_samples(t) else t), found


def _in_order(samples: torch.Tensor, dim: int) -> torch.Tensor:
    """Of complex numbers each part by itself."""
    made = as_real(samples).sort(dim=dim).values
    return torch.view_as_complex(made.contiguous()) if samples.is_complex() else made


ROW_PARTS = ((True, True), (True, False), (False, True))
"""Of which rows are emptied: of numbers, of masks."""


def emptied(inputs: Inputs, numbers: bool, masks: bool, *, all_ways: bool = False) -> tuple[Inputs, bool]:
    """The inputs with one row in eight, along the last dimension, of zeros in tensors of numbers and of what shuts
    everything out in masks and among infinities, a mask of one row as a whole; and whether there was such a tensor;
    `all_ways`: as many in all along every dimension, and whole samples. What pads a batch is like that, a blank image,
    a feature that is always the same; and what divides by the size of a row, or by how much of it is let through, meets
    nothing."""

    def is_emptied(tensor: torch.Tensor) -> bool:
        if tensor.numel() != extent(tensor) or tensor.numel() < 2:
            return False
        if _selects(tensor):
            return masks
        return numbers and tensor.dim() > 1 and may_be_stressed(tensor) and not is_positive_definite(tensor)

    found = any(is_emptied(t) for t in leaves(inputs))
    made = map_leaves(inputs, lambda t: _without_lines(t, all_ways=all_ways) if is_emptied(t) else t)
    return in_order_still(made, inputs), found


def blanked(inputs: Inputs, numbers: bool, masks: bool) -> tuple[Inputs, bool]:
    """The inputs with every element zero in tensors of numbers, and with masks that shut everything out, strides kept;
    and whether there was such a tensor. Positive definite matrices, which zeros are not, stay."""
    made = _blank(inputs, numbers, masks)
    return made, any(now is not was for now, was in zip(leaves(made), leaves(inputs), strict=True))


def vacated(inputs: Inputs, numbers: bool, masks: bool, *, second: bool) -> tuple[Inputs, bool]:
    """The same of every other one of the tensors that it is done to, from the first or the `second` on, while the
    others are as drawn; and whether there are several of these. What is given beside other things may be left out: a
    context, a first state, the targets of an image. A single one holds one number throughout, from the first on: an
    image of one colour has no range either, and is something."""
    blank = leaves(_blank(inputs, numbers, masks))
    changed = [index for index, (now, was) in enumerate(zip(blank, leaves(inputs), strict=True)) if now is not was]
    if len(changed) < 2:
        return (inputs, False) if second else with_each(inputs, (), lambda tensor, _: _level(tensor, numbers))
    chosen = set(changed[second::2])
    made = [blank[index] if index in chosen else was for index, was in enumerate(leaves(inputs))]
    return in_order_still(with_leaves(inputs, made), inputs), True


def _blank(inputs: Inputs, numbers: bool, masks: bool) -> Inputs:

    def blank(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.numel() < 2:
            return tensor
        if _selects(tensor):
            return _filled(tensor, _nothing(tensor)) if masks else tensor
        is_blanked = numbers and may_be_stressed(tensor) and not is_positive_definite(tensor)
        return _filled(tensor, 0.0) if is_blanked else tensor

    return list(map_leaves(inputs, blank))


def _level(tensor: torch.Tensor, numbers: bool) -> torch.Tensor:
    """One power of two for all numbers, as large as they are up to `LEVEL`: sums of it are exact."""
    is_one = numbers and tensor.numel() > 1 and tensor.is_floating_point() and may_be_stressed(tensor)
    if not is_one or _selects(tensor) or is_positive_definite(tensor):
        return tensor
    size, most = read(tensor.float().square().mean().sqrt(), tensor.amax())
    value = min(LEVEL, 2.0 ** round(math.log2(size))) if 0 < size < math.inf else LEVEL
    return _filled(tensor, value if most > 0 else -value)


def _filled(tensor: torch.Tensor, value: float) -> torch.Tensor:
    """`value` everywhere, laid out as it was, so that an expanded tensor takes no more room than before."""
    flat = torch.full((extent(tensor),), value, dtype=tensor.dtype, device=tensor.device)
    return torch.as_strided(flat, tensor.shape, tensor.stride())


def _nothing(tensor: torch.Tensor) -> float:
    """What lets nothing through in a mask; zero of any other tensor."""
    pattern = pattern_of(tensor)
    if pattern:
        return float(pattern.shut)
    return float(tensor.min()) if tensor.is_floating_point() and is_mask(tensor) else 0.0


def _selects(tensor: torch.Tensor) -> bool:
    """Whether it is a mask, or numbers that are infinite where nothing is let through."""
    is_pattern = tensor.is_floating_point() and not may_be_stressed(tensor) and pattern_of(tensor) is not None
    return is_pattern or is_mask(tensor)


def _without_lines(tensor: torch.Tensor, *, all_ways: bool) -> torch.Tensor:
    last = tensor.dim() - 1
    if is_symmetric(tensor) and not is_mask(tensor):
        shut = _lines(tensor, (last,), MIXED_SHARE)
        shut = shut | shut.mT
    else:
        all_ways = all_ways and not _rises(tensor)
        ways: list[tuple[int, ...]] = [(dim,) for dim in range(tensor.dim())] if all_ways else [(last,)]
        ways += [tuple(range(1, tensor.dim()))] if all_ways and tensor.dim() > 2 else []
        shut = _lines(tensor, ways[0], len(ways) * MIXED_SHARE)
        for way in ways[1:]:
            shut = shut | _lines(tensor, way, len(ways) * MIXED_SHARE)
    return tensor.clone(memory_format=torch.preserve_format).masked_fill_(shut, _nothing(tensor))


def _rises(tensor: torch.Tensor) -> bool:
    """Whether rows of real numbers, or some of their columns, are in order, of which a zero in each makes others."""
    if tensor.dim() == 0 or tensor.is_complex() or is_mask(tensor):
        return False
    return (tensor.shape[-1] >= LEAST_SORTED and is_in_order(tensor)) or bool(columns_in_order(tensor))


def _lines(tensor: torch.Tensor, along: Sequence[int], share: int) -> torch.Tensor:
    """Truth values that are the same all `along` these dimensions: true in one of `share` places, one at the least."""
    shape = [1 if dim in along else size for dim, size in enumerate(tensor.shape)]
    chosen = torch.randint(share, shape, device=tensor.device) == 0
    chosen.view(-1)[int(torch.randint(chosen.numel(), (1,)))] = True
    return chosen


def with_other_constants(inputs: Inputs, count: int, factor: float) -> tuple[Inputs, bool]:
    """The inputs with up to `count` elements exchanged (one for zero) in every tensor that holds nothing but ones or
    nothing but zeros, single floating numbers times `factor` and single truth values turned round; and whether there
    was such a tensor. A mask of ones, or a first state of zeros, is the same in every draw and may be another one from
    a caller. Integers of zero stay: they may be places, and there may be no other."""

    def other(tensor: torch.Tensor) -> torch.Tensor:
        if _is_truth(tensor):
            return ~tensor
        if is_constant(tensor):
            return with_others(tensor, count, factor)
        made = tensor
        for at in flag_columns(tensor):
            if is_constant(tensor[at]):
                made = made.clone(memory_format=torch.preserve_format) if made is tensor else made
                made[at] = with_others(tensor[at].contiguous(), count, factor)
        return made

    made = map_leaves(inputs, other)
    return made, any(now is not was for now, was in zip(leaves(made), leaves(inputs), strict=True))


def _is_truth(tensor: torch.Tensor) -> bool:
    return tensor.dtype is torch.bool and tensor.numel() == 1


@keeping_what_stays
def near_one(inputs: Inputs) -> tuple[Inputs, bool]:
    """The inputs with every number's magnitude within some hundredths of one and its sign as it was, save at one place
    of each dimension of several, where all are of one where there are both; and whether there was any. A product of
    many of them neither vanishes nor overflows, as one of what is drawn soon does, and the largest number of a channel
    is never negative."""

    def made(tensor: torch.Tensor) -> torch.Tensor:
        if not may_be_stressed(tensor):
            return tensor
        flat = torch.as_strided(tensor, (extent(tensor),), (1,), tensor.storage_offset())
        near = flat.sgn() * (1 + NEAR_ONE * torch.randn_like(flat.real))
        near = torch.as_strided(near, tensor.shape, tensor.stride())
        if not tensor.is_complex() and tensor.numel() == extent(tensor) and holds_both_signs(tensor):
            _side_lines(near)
        return as_agreed(near, tensor)

    return map_leaves(inputs, made), any(map(may_be_stressed, leaves(inputs)))


def _side_lines(numbers: torch.Tensor) -> None:
    """Make all at one place of each dimension of several one sign, in place."""
    sign = ENTROPY.choice((-1.0, 1.0))
    for dim, size in enumerate(numbers.shape):
        if size > 1:
            line = numbers.select(dim, ENTROPY.randrange(size))
            line.copy_(line.abs() * sign)


def with_others(tensor: torch.Tensor, count: int, factor: float = 0.5) -> torch.Tensor:
    if tensor.numel() == 1:
        return torch.where(tensor == 0, factor, tensor * factor).to(tensor.dtype)
    size = extent(tensor)
    flat = torch.as_strided(tensor, (size,), (1,), tensor.storage_offset()).clone()
    places = torch.randint(size, (count,), device=tensor.device)
    flat[places] = (flat[places] == 0).to(flat.dtype)
    return torch.as_strided(flat, tensor.shape, tensor.stride())


def _swapped(tensor: torch.Tensor) -> torch.Tensor:
    size = extent(tensor)
    flat = torch.as_strided(tensor, (size,), (1,), tensor.storage_offset()).clone()
    places = torch.unique(torch.randint(size, (SWAPPED,), device=tensor.device))
    flat[places] = flat[places[torch.randperm(places.numel(), device=tensor.device)]]
    return torch.as_strided(flat, tensor.shape, tensor.stride())


def _exchanged(inputs: Inputs, other: Inputs, factor: float) -> Inputs:
    others = map(without_infinities, leaves(other))
    return list(map_leaves(inputs, lambda t: _with_some_of(t, next(others), factor)))


def _with_some_of(tensor: torch.Tensor, other: torch.Tensor, factor: float) -> torch.Tensor:
    if not may_be_stressed(tensor):
        return tensor
    size = (extent(tensor),)
    flat = torch.as_strided(tensor, size, (1,), tensor.storage_offset()).clone()
    places = torch.randint(size[0], (TOUCHED,), device=tensor.device)
    flat[places] = torch.as_strided(other, size, (1,), other.storage_offset())[places] * factor
    return as_agreed(torch.as_strided(flat, tensor.shape, tensor.stride()), tensor)


def _scaled(tensor: torch.Tensor, factor: float) -> torch.Tensor:
    """`tensor * factor` laid out as it was, so that an expanded tensor takes no more room than before."""
    flat = torch.as_strided(tensor, (extent(tensor),), (1,), tensor.storage_offset())
    return as_agreed(torch.as_strided(flat * factor, tensor.shape, tensor.stride()), tensor)
