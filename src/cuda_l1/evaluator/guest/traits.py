"""What a tensor looks like: numbers or choices, masks, shares of one, matrices with a structure to rely on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from .reading import Once, hosted, once, read, read_each
from .tensors import as_real, extent

LEAST_SHARE = 2.0**-7

FEW_VALUES = 16
"""Beside zero, in a tensor that stands for choices and not for numbers."""


@once
def may_be_stressed(tensor: torch.Tensor) -> bool:
    """Whether scaling or negating keeps the tensor a plausible input: floating, not a mask, a table or structured."""
    if tensor.is_complex():
        return tensor.numel() > 1 and not is_constant(tensor)
    if not tensor.is_floating_point() or tensor.numel() < 2 or tensor.dtype.itemsize < 2:
        return False
    look = _look(tensor)
    if look.zeros > 0.2 and has_few_values(sampled(tensor).float()):  # a mask, a one-hot table
        return False
    return not (outside(tensor) or look.is_binary or look.sums_to_one)


@dataclass(frozen=True)
class _Look:
    """What some of the elements of a floating tensor show."""

    zeros: float
    """The share of them."""
    infinities: list[float]
    """Which of both it holds."""
    far_out: list[float]
    """Its least number and its largest, where it comes again and again and lies `FAR_OUT` times as far out as all
    others."""
    first: list[float]
    """`_FIRST` elements, zeros where it has fewer."""
    is_binary: bool
    """Zeros and ones, and nothing else."""
    both_signs: bool
    sums_to_one: bool
    """Rows do, and hold nothing below zero."""
    in_order: bool
    """None of the rows falls anywhere."""
    is_symmetric: bool
    """Corners of its matrices are."""
    is_definite: bool
    """The corner of the first may be one of a positive definite matrix."""


@Once
def _look(tensors: Sequence[torch.Tensor]) -> list[_Look]:
    return [_seen(*told) for told in read_each([_asked(tensor) for tensor in tensors])]


def look_at(tensors: Sequence[torch.Tensor]) -> None:
    """Ask of all these at once what will be asked of each."""
    _look.of_each([tensor for tensor in tensors if _is_looked_at(tensor)])


def _is_looked_at(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and tensor.dtype.itemsize > 1


def _asked(tensor: torch.Tensor) -> list[torch.Tensor]:
    flat = sampled(tensor)
    zeros, true = flat == 0, torch.ones((), dtype=torch.bool, device=tensor.device)
    asked = [zeros.float().mean(), (flat == -math.inf).any(), (flat == math.inf).any()]
    asked += [_far_out(flat, end) for end in flat.aminmax()] if flat.numel() else [~true, ~true]
    asked += [*flat[:_FIRST], *[flat.new_zeros(())] * (_FIRST - flat.numel())]
    asked += [(zeros | (flat == 1)).all(), (flat < 0).any() & (flat > 0).any()]
    if tensor.dim() > 0 and tensor.shape[-1] > 1:
        rows = tensor.reshape(-1, tensor.shape[-1])[:64]
        asked += [_are_shares(rows.float()), (rows[:, 1:] >= rows[:, :-1]).all()]
    else:
        asked += [~true, true]
    if not _is_square(tensor):
        return [*asked, ~true, ~true]
    corner = tensor[..., :_CORNER, :_CORNER]
    return [
        *asked,
        (corner == corner.mT).all(),
        _look_definite(corner.flatten(0, -3)[:1] if corner.dim() > 2 else corner),
    ]


def _far_out(flat: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
    """`end`, the least or the largest of these, where it is `far_out`, else 0."""
    is_end = flat == end
    others = flat.masked_fill(is_end, 0).abs().amax()
    is_far = (is_end.float().mean() > OFTEN) & torch.isfinite(end) & (end.abs() >= FAR_OUT * others) & (others > 0)
    return torch.where(is_far, end, 0)


def _seen(share: float, low: float, high: float, least: float, most: float, *others: float) -> _Look:
    infinities = [end for end, is_there in ((-math.inf, low), (math.inf, high)) if is_there]
    far_out = [end for end in (least, most) if end]
    return _Look(share, infinities, far_out, list(others[:_FIRST]), *map(bool, others[_FIRST:]))


FAR_OUT, OFTEN = 16, 0.01
"""How many times as far out as all others a finite number lies, and which share holds it, that stands for nothing: -1e9
beside scores, -9999 beside measurements."""
_FIRST = 8
"""Elements that show of most pairs of tensors that neither is below the other one."""
_CORNER = 8
"""Rows and columns that tell most matrices from symmetric ones."""


def _are_shares(rows: torch.Tensor) -> torch.Tensor:
    return (rows >= 0).all() & ((rows.sum(-1) - 1).abs() < 1e-2).all()


def sampled(tensor: torch.Tensor) -> torch.Tensor:
    """Elements of a tensor, one after the other, some 65,536 of a large one."""
    flat = tensor.detach().flatten()
    return flat[:: max(1, flat.numel() // 65536)]


@once
def holds_both_signs(tensor: torch.Tensor) -> bool:
    """Whether floating numbers above zero and below it are there, in either part of complex ones."""
    if _is_looked_at(tensor):
        return _look(tensor).both_signs
    parts = as_real(tensor)
    return bool((parts < 0).any() & (parts > 0).any())


@once
def outside(tensor: torch.Tensor) -> list[float]:
    """What stands for nothing in it, of the elements that are looked at: which of both infinities it holds, or a finite
    number far out beside many others."""
    if not _is_looked_at(tensor):
        return []
    look = _look(tensor)
    if look.infinities or not look.far_out:
        return look.infinities
    return [] if has_few_values(_beside(tensor, look.far_out).float()) else look.far_out


def _beside(tensor: torch.Tensor, ends: Sequence[float]) -> torch.Tensor:
    """Finite elements of those that are looked at, without these."""
    flat = sampled(tensor).cpu()
    is_number = torch.isfinite(flat)
    for end in ends:
        is_number &= flat != end
    return flat[is_number]


def is_outside(tensor: torch.Tensor) -> torch.Tensor:
    """Where it holds what stands for nothing."""
    found = torch.isinf(tensor)
    for end in outside(tensor):
        found |= tensor == end
    return found


@once
def has_numbers_beside(tensor: torch.Tensor) -> bool:
    """Whether it stands for numbers beside what stands for nothing: a mask that is added has few."""
    ends = outside(tensor)
    return bool(ends) and not has_few_values(_beside(tensor, ends).float())


MANY_ZEROS = 0.01
"""From this share on zeros are there by no chance: a triangle, padding, what a ReLU leaves."""


def holds_zeros(tensor: torch.Tensor) -> bool:
    if _is_looked_at(tensor):
        return _look(tensor).zeros > MANY_ZEROS
    return float((sampled(tensor) == 0).float().mean()) > MANY_ZEROS


WINDOW, NARROW = 64, 8
"""Elements along the last two dimensions (of a series the square of it), and along each of the others, among which a
structure is looked for."""
AS_BY_CHANCE = 0.25
"""By which share zeros may have more or fewer neighbours that are none than those which lie by chance."""
LEAST_CHANGES = 48
"""So many such neighbours tell chance from structure."""


@once
def has_structure_of_zeros(tensor: torch.Tensor) -> bool:
    """Whether many zeros lie as they do by no chance: in triangles, blocks, rows, bands, or as many in each row. What a
    rectification or a dropout leaves lies anywhere, and no kernel may rely on how much of it there is."""
    if not holds_zeros(tensor):
        return False
    if _are_as_many(tensor != 0, -1):
        return True
    window = tensor
    for dim, size in enumerate(tensor.shape):
        width = min(size, WINDOW**2 if tensor.dim() == 1 else WINDOW if dim >= tensor.dim() - 2 else NARROW)
        window = window.narrow(dim, (size - width) // 2, width)
    zeros, most = window == 0, 0.0
    changing = 2 * float(zeros.float().mean()) * float((~zeros).float().mean())
    for dim, size in enumerate(zeros.shape):
        changes, due = int(zeros.diff(dim=dim).sum()), changing * zeros.numel() * (size - 1) / size
        most = max(most, due)
        if abs(changes - due) > max(AS_BY_CHANCE * due, 3 * due**0.5) or _are_as_many(zeros, dim):
            return True
    return most < LEAST_CHANGES


def _are_as_many(truths: torch.Tensor, dim: int) -> bool:
    """Whether as many are true in each of several rows along `dim`."""
    counts = truths.sum(dim).flatten()
    return len(counts) > 1 and bool((counts == counts[0]).all())


def has_few_values(flat: torch.Tensor) -> bool:
    """Activations behind a ReLU and triangles hold as many values as other numbers do."""
    flat = flat.cpu()  # one wait, where choosing them there would be two
    found = flat[flat != 0][:4096]
    return bool(torch.unique(found).numel() <= FEW_VALUES)


@once
def rows_sum_to_one(tensor: torch.Tensor) -> bool:
    if tensor.dim() < 1 or tensor.shape[-1] < 2:
        return False
    return bool(_are_shares(tensor.reshape(-1, tensor.shape[-1])[:64].float()))


def are_shares(tensor: torch.Tensor) -> bool:
    """Rows of many values that sum to one: what they sum to may be taken for granted, unless they are once smaller."""
    if not tensor.is_floating_point() or tensor.numel() < 2 or tensor.dtype.itemsize < 2:
        return False
    return rows_sum_to_one(tensor) and not has_few_values(sampled(tensor).float())


@once
def is_constant(tensor: torch.Tensor) -> bool:
    if tensor.numel() == 0 or (tensor.is_floating_point() and tensor.dtype.itemsize < 2):
        return False
    if tensor.numel() == 1:
        return tensor.is_floating_point() or tensor.is_complex()
    ones, zeros = read((tensor == 1).all(), (tensor == 0).all())
    return bool(ones) or (not is_integer(tensor) and bool(zeros))


_OPAQUE = {torch.bool, torch.uint16, torch.uint32, torch.uint64}
"""Beside truth values dtypes in which torch neither adds nor orders: such inputs stay as they are drawn."""


def is_integer(tensor: torch.Tensor) -> bool:
    """Whether it holds integers that are computed with."""
    return not (tensor.is_floating_point() or tensor.is_complex()) and tensor.dtype not in _OPAQUE


@once
def is_mask(tensor: torch.Tensor) -> bool:
    """Whether it chooses: truth values, or a few floating numbers again and again. Integers may be places, whose order
    matters, and so are one-hot rows."""
    if tensor.numel() < 2 or is_one_hot(tensor):
        return False
    if tensor.dtype is torch.bool:
        return True
    if not tensor.is_floating_point() or tensor.dtype.itemsize < 2:
        return False
    return tensor.numel() > 4 * FEW_VALUES and has_few_values(sampled(tensor))


@once
def is_one_hot(tensor: torch.Tensor) -> bool:
    return tensor.dim() > 1 and tensor.shape[-1] > 1 and bool(((tensor != 0).sum(dim=-1) == 1).all())


def are_distinct(tensor: torch.Tensor, dim: int) -> bool:
    """Whether nothing comes twice along `dim`."""
    if tensor.shape[dim] < 2:
        return False
    steps = tensor.sort(dim=dim).values.diff(dim=dim)
    return bool((steps != 0).all())


LEAST_SORTED = 8
"""A row of so many numbers is not in order by chance."""


@once
def is_in_order(tensor: torch.Tensor) -> bool:
    """Whether each row of real numbers is: none falls anywhere."""
    looks_so = not _is_looked_at(tensor) or _look(tensor).in_order
    return looks_so and bool((tensor[..., 1:] >= tensor[..., :-1]).all())


MOST_COLUMNS, LEAST_ROWS = 8, 20
"""Of a table in which no column is below another one by chance."""


@once
def columns_in_order(tensor: torch.Tensor) -> tuple[tuple[int, int], ...]:
    """Columns, along the last dimension, of which the first is nowhere above the second, and mostly below it: corners
    of boxes, ends of intervals. What has more than one above it comes before these."""
    width = tensor.shape[-1] if tensor.dim() > 1 and _is_looked_at(tensor) else 0
    if not 1 < width <= MOST_COLUMNS or tensor.numel() < width * LEAST_ROWS:
        return ()
    columns = tensor.reshape(-1, width).t()
    return _in_order(columns, hosted([columns[:, :64]])[0])


def tensors_in_order(tensors: Sequence[torch.Tensor]) -> tuple[tuple[int, int], ...]:
    """The same of dense tensors of numbers that lie alike, element by element."""
    alike: dict[tuple[torch.Size, tuple[int, ...], torch.dtype], list[int]] = {}
    for index, tensor in enumerate(tensors):
        if _is_looked_at(tensor) and tensor.numel() == extent(tensor) >= LEAST_ROWS and may_be_stressed(tensor):
            alike.setdefault((tensor.shape, tensor.stride(), tensor.dtype), []).append(index)
    groups = [group for group in alike.values() if len(group) > 1]
    found = []
    for group in groups:
        first = torch.tensor([_look(tensors[index]).first for index in group])
        pairs = _in_order([_as_it_lies(tensors[index]) for index in group], first)
        found += [(group[low], group[high]) for low, high in pairs]
    return tuple(found)


def _as_it_lies(tensor: torch.Tensor) -> torch.Tensor:
    return torch.as_strided(tensor, (tensor.numel(),), (1,), tensor.storage_offset())


def _in_order(lists: Sequence[torch.Tensor] | torch.Tensor, first: torch.Tensor) -> tuple[tuple[int, int], ...]:
    """Numbers of those, of equally many elements, of which one is nowhere above the other, and mostly below it in the
    `first` ones."""
    below = (first[:, None] <= first).all(-1) & ((first[:, None] < first).sum(-1) * 2 > first.shape[-1])
    found = [(i, j) for i, j in torch.nonzero(below).tolist() if bool((lists[i] <= lists[j]).all())]
    above = [sum(i == index for i, _ in found) for index in range(len(lists))]
    return tuple(sorted(found, key=lambda pair: -above[pair[0]]))


@once
def is_symmetric(tensor: torch.Tensor) -> bool:
    looks_so = _is_square(tensor) and (not _is_looked_at(tensor) or _look(tensor).is_symmetric)
    return looks_so and torch.equal(tensor, tensor.mT)


LARGEST_FACTORED = 2048
"""Rows of the largest matrices of which it is found out whether they are positive definite."""


@once
def is_positive_definite(tensor: torch.Tensor) -> bool:
    """Whether it holds matrices that are all symmetric, up to rounding, and positive definite."""
    if not _is_square(tensor) or not tensor.is_floating_point() or tensor.dtype.itemsize < 2:
        return False
    if tensor.numel() == 0 or tensor.shape[-1] > LARGEST_FACTORED:
        return False
    if not _look(tensor).is_definite:
        return False
    first = tensor[(0,) * (tensor.dim() - 2)]  # a batch of images is told by one of them
    return _are_definite(first) and (first.numel() == tensor.numel() or _are_definite(tensor))


def _are_definite(matrices: torch.Tensor) -> bool:
    return bool(_look_definite(matrices)) and bool((torch.linalg.cholesky_ex(matrices.double()).info == 0).all())


def _look_definite(matrices: torch.Tensor) -> torch.Tensor:
    """Whether they are symmetric, up to rounding, and hold nothing that no part of a positive definite one does."""
    diagonal = matrices.diagonal(dim1=-2, dim2=-1).double()
    sizes = diagonal.sqrt()
    limits = sizes.unsqueeze(-1) * sizes.unsqueeze(-2)
    eps = torch.finfo(matrices.dtype).eps
    rounding = (64 if matrices.dtype.itemsize > 2 else 2) * eps  # sums in half precision are rounded once
    is_finite = torch.isfinite(matrices).all() & (diagonal > 0).all()
    fits = (matrices.abs() <= (1 + eps) * limits) & ((matrices - matrices.mT).abs() <= rounding * limits)
    return is_finite & fits.all()


def _is_square(tensor: torch.Tensor) -> bool:
    return tensor.dim() > 1 and tensor.shape[-1] == tensor.shape[-2] > 2
