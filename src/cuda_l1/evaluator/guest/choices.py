"""Other values for inputs that are the same in every draw: edges, routing, lengths, shares, masks, tables.

Who never reads them, or keeps what was made of them once, is right for all that a task draws. Other values are made of
those that are there, so that they are values the task may hold: places stay in range, and as often as they were; rows
keep their sum; numbers keep their signs and do not grow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import torch

from . import state
from .agreed import as_agreed
from .drawing import Inputs
from .places import some_places
from .tensors import extent, leaves, with_leaves
from .traits import (
    FEW_VALUES,
    LEAST_SORTED,
    is_integer,
    is_one_hot,
    is_outside,
    is_symmetric,
    may_be_stressed,
    outside,
    rows_sum_to_one,
)

PARTS = ((True, True), (True, False), (False, True))
"""What gets other values, from the first to the last that the reference stands: numbers, what selects."""
ROWS, ELEMENTS = 8, 256
"""The most rows of a tensor, and the most single elements, that become others: enough that a look at some tells."""
FEW_ELEMENTS = 2
"""What a trial with `few` changes of these in their place: so little that a look at some does not tell."""
COLUMNS = 64
"""Lists of places in one tensor, at the most, in which values are exchanged for other values; where there are more,
what lies beside one another in all of them changes places together."""
COUNTS = 1 << 24
"""Numbers, at the most, that are kept to find values which several lists hold equally often, so that one exchange of
values serves all of them; where there would be more, values are exchanged in each list for itself."""


def alike(inputs: Inputs, other: Inputs) -> frozenset[int]:
    """Which tensors, in the order of `leaves`, two draws have in common."""
    pairs = list(zip(leaves(inputs), leaves(other), strict=True))
    return frozenset(index for index, is_same in enumerate(state.same_each(pairs)) if is_same)


def with_other_choices(
    inputs: Inputs, fixed: Collection[int], *, numbers: bool, places: bool, few: bool = False
) -> tuple[Inputs, bool]:
    """The inputs with other values in the tensors `fixed` (in the order of `leaves`), and whether any was changed.
    `numbers`: shares, tables and what holds infinities. `places`: integers, one-hot rows and small masks. `few`: one or
    two of each, which a look at some does not find."""
    tensors = list(leaves(inputs))
    sizes = {size for tensor in tensors for size in tensor.shape}
    lists = [index for index in fixed if is_integer(tensors[index]) and tensors[index].numel() > 1]
    alone = len(lists) == 1  # beside others what is in order may have to agree with them
    kind = _Kind(sizes, few, {number for number in inputs if type(number) is int} if alone else None)
    made = []
    for index, tensor in enumerate(tensors):
        change = _change(tensor, kind, numbers=numbers, places=places) if index in fixed else None
        made.append(tensor if change is None else _changed(tensor, change))
    found = any(now is not was for now, was in zip(made, leaves(inputs), strict=True))
    return with_leaves(inputs, made), found


@dataclass(frozen=True)
class _Kind:
    """How much of a tensor becomes other, and what may."""

    sizes: Collection[int]
    """Of the inputs' dimensions: what lengths may add up to."""
    few: bool
    largest: Collection[int] | None
    """Integers of Python's among the inputs, of which one may be the largest distance between integers in order; None
    where these stay as they are."""


Change = Callable[[torch.Tensor], torch.Tensor]


def _change(tensor: torch.Tensor, kind: _Kind, *, numbers: bool, places: bool) -> Change | None:
    """What makes another tensor of this one; None where it stays."""
    few = kind.few
    if tensor.numel() < 2:
        return None
    if is_integer(tensor):
        return (lambda t: _other_integers(t.long(), kind).to(t.dtype)) if places else None
    if tensor.dtype is torch.bool:
        return (lambda t: _reordered(t, few)) if places and is_one_hot(tensor) else None
    if tensor.is_complex():
        return (lambda t: _with_smaller(t, few)) if numbers and may_be_stressed(tensor) else None
    if not tensor.is_floating_point() or tensor.dtype.itemsize < 2:
        return None
    if is_one_hot(tensor) and not _is_identity(tensor):
        return (lambda t: _reordered(t, few)) if places else None
    if _is_identity(tensor) or outside(tensor) or may_be_stressed(tensor):
        return (lambda t: _with_smaller(t, few)) if numbers else None
    if rows_sum_to_one(tensor) and bool(((tensor != 0).sum(-1) > 1).any()):
        if is_symmetric(tensor):
            return (lambda t: _reordered(t, few)) if places else None
        return (lambda t: _reweighted(t, few)) if numbers else None
    in_order = tensor.shape[-1] >= LEAST_SORTED and bool((tensor.diff(dim=-1) >= 0).all())
    small = tensor.numel() <= 4 * FEW_VALUES  # elements of larger masks change places in another trial
    return _with_one_moved if places and small and not in_order else None


def _changed(tensor: torch.Tensor, change: Change) -> torch.Tensor:
    """`tensor` after a change of what it holds once, laid out as it was; itself where nothing became another."""
    flat = torch.as_strided(tensor, (extent(tensor),), (1,), tensor.storage_offset()).clone()
    made = torch.as_strided(flat, tensor.shape, tensor.stride())
    once = made
    for dim, stride in enumerate(tensor.stride()):
        once = once.narrow(dim, 0, 1) if stride == 0 else once
    if once.numel() > 1:
        once.copy_(change(once.clone()))
    return tensor if state.same(made, tensor) else made


def _is_identity(tensor: torch.Tensor) -> bool:
    return is_symmetric(tensor) and is_one_hot(tensor) and bool((tensor.diagonal(dim1=-2, dim2=-1) == 1).all())


def _with_smaller(tensor: torch.Tensor, few: bool) -> torch.Tensor:
    """Some elements times U(0.5, 1); of a symmetric tensor rows and columns, which leaves a definite one definite."""
    if is_symmetric(tensor):
        shape = tensor.shape[:-1]
        scale = torch.where(
            some_places(shape, 1 if few else ROWS, tensor), 0.5 + 0.5 * torch.rand(shape, device=tensor.device), 1.0
        )
        return (tensor * (scale.unsqueeze(-1) * scale.unsqueeze(-2))).to(tensor.dtype)
    factors = 0.5 + 0.5 * torch.rand(tensor.shape, device=tensor.device)
    chosen = some_places(tensor.shape, FEW_ELEMENTS if few else ELEMENTS, tensor) & ~is_outside(tensor)
    return as_agreed(torch.where(chosen, tensor * factors, tensor).to(tensor.dtype), tensor)


def _reweighted(tensor: torch.Tensor, few: bool) -> torch.Tensor:
    """Some rows times U(0.5, 1.5), with the sum that they had."""
    other = tensor * (0.5 + torch.rand(tensor.shape, device=tensor.device))
    other *= tensor.sum(-1, keepdim=True) / other.sum(-1, keepdim=True)
    chosen = some_places(tensor.shape[:-1], 1 if few else ROWS, tensor).unsqueeze(-1)
    return as_agreed(torch.where(chosen, other.to(tensor.dtype), tensor), tensor)


def _with_one_moved(tensor: torch.Tensor) -> torch.Tensor:
    """A zero and another number in each other's places."""
    flat = tensor.flatten()
    for is_zero in (True, False):
        if not bool(((flat == 0) == is_zero).any()):
            return tensor
    zeros, others = (flat == 0).nonzero().flatten(), flat.nonzero().flatten()
    pair = torch.stack([part[torch.randint(len(part), (1,), device=flat.device)] for part in (zeros, others)]).flatten()
    flat[pair] = flat[pair.flip(0)]
    return flat.view(tensor.shape)


def _cycle(count: int, like: torch.Tensor, few: bool = False) -> torch.Tensor:
    """A permutation that leaves nothing in its place; or, of a `few`, all but two."""
    order = torch.randperm(count, device=like.device)[: FEW_ELEMENTS if few else count]
    return torch.arange(count, device=like.device).scatter_(0, order, order.roll(1))


def _reordered(tensor: torch.Tensor, few: bool) -> torch.Tensor:
    """Rows in another order; of a symmetric tensor rows and columns."""
    order = _cycle(tensor.shape[-2], tensor, few)
    rows = tensor.index_select(-2, order)
    return rows.index_select(-1, order) if is_symmetric(tensor) else rows


# ── integers ──────────────────────────────────────────────────────────────────────────────────────


def _other_integers(tensor: torch.Tensor, kind: _Kind) -> torch.Tensor:
    """Places: others that are there as often, or in another order along the longest dimension, so that each stays in
    the column whose range it has. What is in order stays so: offsets, boundaries, segments. One number throughout:
    lower ones in some places, in falling order, as lengths may be, unless they add up to the size of something."""
    value = int(tensor.flatten()[0])
    if bool((tensor == value).all()):
        if value < 2 or value * tensor.numel() in kind.sizes:
            return tensor
        lower = torch.randint(1, value, tensor.shape, device=tensor.device)
        chosen = some_places(tensor.shape, FEW_ELEMENTS if kind.few else ELEMENTS, tensor)
        return torch.where(chosen, lower, tensor).sort(dim=-1, descending=True).values
    if is_symmetric(tensor):
        return _reordered(tensor, kind.few)
    longest = max(range(tensor.dim()), key=lambda dim: (tensor.shape[dim], dim))
    turned = tensor.movedim(longest, -1)
    return _other_places(turned.reshape(-1, turned.shape[-1]), kind).view(turned.shape).movedim(-1, longest)


def _other_places(rows: torch.Tensor, kind: _Kind) -> torch.Tensor:
    """Rows of integers with other ones, see `_other_integers`."""
    kept = _are_in_order(rows)
    if kind.largest is not None and len(rows) <= COLUMNS and bool((rows.diff(dim=-1) >= 0).all()):
        return torch.stack([_at_other_distances(row, kind) for row in rows])
    if kind.few:
        return rows if bool(kept.all()) else _with_two_exchanged(rows, kept)
    made = _renamed(rows, kept) if len(rows) <= COLUMNS else rows
    if torch.equal(made, rows) and not bool(kept.any()):
        made = rows[:, _cycle(rows.shape[1], rows)]
    return made


def _with_two_exchanged(rows: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """Two different integers of one row that is not `kept` in each other's places."""
    free = (~kept).nonzero().flatten()
    made, place = rows.clone(), int(free[torch.randint(len(free), (1,), device=rows.device)])
    one = int(torch.randint(rows.shape[1], (1,)))
    others = (rows[place] != rows[place, one]).nonzero().flatten()
    if len(others):
        other = int(others[torch.randint(len(others), (1,), device=rows.device)])
        made[place, [one, other]] = rows[place, [other, one]]
    return made


def _at_other_distances(row: torch.Tensor, kind: _Kind) -> torch.Tensor:
    """Integers in rising order with the distances between them, or how often each comes, dealt in another order, so
    that the ends and the largest distance stay. Where all are the same, on a CPU some integers become lower: on a GPU
    what is then too far apart may not fit in the room that the reference makes, which breaks the judge's context."""
    values: torch.Tensor
    values, counts = torch.unique(row, return_counts=True)
    parts = counts if len(values) < len(row) else row.diff()
    if len(parts) < 2:
        return row
    if bool((parts != parts[0]).any()):
        order = _cycle(len(parts), row)
        if kind.few:  # two beside one another: one place moves
            unlike = (parts[1:] != parts[:-1]).nonzero().flatten()
            one = unlike[torch.randint(len(unlike), (1,), device=row.device)]
            order = torch.arange(len(parts), device=row.device)
            order[one], order[one + 1] = one + 1, one
        dealt = parts[order]
        return values.repeat_interleave(dealt) if parts is counts else torch.cat([row[:1], dealt]).cumsum(0)
    part = int(parts[0])
    if part < 2 or part in (kind.largest or ()) or row.device.type != "cpu":
        return row
    made, inner = row.clone(), torch.arange(1, len(parts), 2)  # the one before stays
    some = inner[torch.randperm(len(inner))[: 1 if kind.few else len(inner)]]
    if parts is counts:
        made[some * part] = values[some - 1]
    else:
        made[some] -= torch.randint(1, part, some.shape)
    return made


def _are_in_order(rows: torch.Tensor) -> torch.Tensor:
    """Of each row whether it is in order; a falling one may be a list of lengths, and is none in a large table."""
    steps = rows.diff(dim=-1)
    rising, falling = (steps >= 0).all(-1), (steps <= 0).all(-1)
    return rising | falling if len(rows) <= 4 else rising


def _renamed(rows: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """Values exchanged for others that a row holds as often, in all rows at once where all hold the same ones: what is
    one place here and there stays one. Rows that are `kept` stay."""
    values: torch.Tensor
    values, places = torch.unique(rows, return_inverse=True)
    together = len(rows) == 1 or (len(rows) * len(values) <= COUNTS and not bool(kept.any()))
    if together:
        counts = rows.new_zeros(len(rows), len(values)).scatter_add_(1, places, torch.ones_like(places))
        together = bool((counts > 0).all())
    if not together:
        pairs = zip(rows.unsqueeze(1), kept.unsqueeze(1), strict=True)
        return torch.cat([_renamed(row, alone) for row, alone in pairs])
    if bool(kept.any()):
        return rows
    key = (counts * torch.randint(1 << 62, (len(rows), 1), device=rows.device)).sum(0)  # one number for each column
    shuffled = torch.randperm(len(values), device=rows.device)
    target = torch.empty_like(shuffled)
    target[key.argsort(stable=True)] = shuffled[key[shuffled].argsort(stable=True)]
    return values.take(target[places])
