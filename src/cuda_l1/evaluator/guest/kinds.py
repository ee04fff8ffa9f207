"""How often integers come: exactly once, not at all, or twice where all of a draw are different.

Of hundreds of labels dealt to a few kinds none comes once, each part of a batch has some elements, and a few ids of a
large vocabulary are all different. Values are those that are there, in rows whose range they have; what is in order
stays so.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch

from .dispatch import DispatchMode
from .drawing import Inputs
from .places import some_places
from .reference import BadTask, Reference
from .tensors import leaves
from .traits import are_distinct, is_integer, is_symmetric

ONCE_ROWS, ONCE_ELEMENTS = 16, 1 << 20
"""The most rows of a tensor in which any value comes once, or none, and the most elements of these together, save where
a single row has more: each is sorted for it."""
DISTINCT = 1 << 16
"""Elements, at the most, of a list of which it is asked whether it holds nothing twice by chance."""
TWICE = 256
"""The most elements of a tensor that come twice."""
PARTS = 4
"""Lengths, and bounds of segments, of which some can be nothing while others are not."""
_DRAWN = {"randint", "randint_like", "random"}
"""What may draw the same integer twice."""
_PUT = {"index_put", "index_copy", "scatter", "put"}
"""What overwrites places, so that what comes later in a list counts, or anything."""


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    """A view, or a copy, of shape (rows, longest dimension): what lies beside it may have a range of its own."""
    longest = max(range(tensor.dim()), key=lambda dim: (tensor.shape[dim], dim))
    return tensor.movedim(longest, -1).reshape(-1, tensor.shape[longest])


def _put_rows(tensor: torch.Tensor, rows: torch.Tensor) -> None:
    longest = max(range(tensor.dim()), key=lambda dim: (tensor.shape[dim], dim))
    turned = tensor.movedim(longest, -1)
    turned.copy_(rows.view(turned.shape))


# ── once, and not at all ───────────────────────────────────────────────────────────────────────


def is_of_parts(tensor: torch.Tensor, sizes: Collection[int]) -> bool:
    """Whether integers say where parts of something lie, which others among the inputs may say, too: rows in rising
    order, and lengths."""
    return add_up(tensor, sizes) or bool((_rows(tensor).diff() >= 0).all())


def put_once(tensor: torch.Tensor) -> None:
    """In half of the rows of integers, in place, one value comes once only, and of four and more another does not come:
    in their places is the one before or after it. Bounds of segments, which rise from zero on, have one that is empty
    and one of length one."""
    if is_symmetric(tensor):
        return
    rows = _rows(tensor).clone()
    most = max(1, min(ONCE_ROWS, ONCE_ELEMENTS // rows.shape[1]))
    chosen = (torch.rand(len(rows)) < 0.5).nonzero().flatten()[:most].tolist()
    for row in chosen or [int(torch.randint(len(rows), (1,)))]:
        steps = rows[row].diff()
        if bool((steps > 0).all()):
            if int(rows[row, 0]) == 0 and bool((steps > 1).any()):
                _bring_together(rows[row])
        else:
            _put_one_once(rows[row])
    _put_rows(tensor, rows)


def _put_one_once(row: torch.Tensor) -> None:
    values: torch.Tensor
    values, counts = torch.unique(row, return_counts=True)
    often = (counts > 1).nonzero().flatten()
    if len(values) < 2 or not len(often):
        return
    once = int(often[torch.randint(len(often), (1,))])
    is_first = once == 0 or (once < len(values) - 1 and bool(torch.rand(()) < 0.5))
    places = (row == values[once]).nonzero().flatten()
    row[places[:-1] if not is_first else places[1:]] = values[once + 1 if is_first else once - 1]
    free = [k for k in range(1, len(values) - 1) if abs(k - once) > 1]
    if free:
        gone = free[int(torch.randint(len(free), (1,)))]
        row[row == values[gone]] = values[gone + 1 if gone > once else gone - 1]


def _bring_together(bounds: torch.Tensor) -> None:
    """Of bounds in rising order one becomes the one before, and the one after one more than that."""
    if len(bounds) > PARTS:
        at = int(torch.randint(1, len(bounds) - 2, (1,)))
        bounds[at] = bounds[at - 1]
        bounds[at + 1] = bounds[at] + 1


# ── lengths ─────────────────────────────────────────────────────────────────────────────────


def add_up(tensor: torch.Tensor, sizes: Collection[int]) -> bool:
    """Whether integers are lengths of the parts of something."""
    return tensor.dim() == 1 and tensor.numel() >= PARTS and int(tensor.min()) >= 0 and int(tensor.sum()) in sizes


def deal(lengths: torch.Tensor, most: int) -> None:
    """One of these becomes zero and another one, in place, and the others as much longer, none beyond `most`; they stay
    as they are where there is no room."""
    made = lengths.tolist()
    order = torch.randperm(len(made)).tolist()
    some = [at for at in order if made[at] > 1][:2]
    left = sum(made[at] for at in some) - len(some) + 1
    for length, at in enumerate(some):
        made[at] = length
    for at in order:
        if at not in some and made[at]:
            more = min(left, most - made[at])
            made[at], left = made[at] + more, left - more
    if not left and some:
        lengths.copy_(torch.tensor(made))


# ── twice ───────────────────────────────────────────────────────────────────────────────────


def put_twice(tensor: torch.Tensor, other: torch.Tensor | None) -> None:
    """Some elements, in place, are what another one of their row is, and some what another list holds: in the same
    place of one of the same shape, else in the same row, else anywhere. None is beyond the tensor's own range."""
    rows, least, most = _rows(tensor).clone(), tensor.min(), tensor.max()
    again = rows.gather(1, torch.randint(rows.shape[1], rows.shape, device=rows.device))
    chosen = some_places(rows.shape, TWICE, rows)
    _put_rows(tensor, torch.where(chosen, again, rows))
    if other is not None:
        held = _of_another(other, tensor)
        chosen = some_places(tensor.shape, TWICE, tensor) & (held >= least) & (held <= most)
        tensor.copy_(torch.where(chosen, held, tensor))


def _of_another(other: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """What it holds, of the shape of `like`."""
    if other.shape == like.shape:
        return other.to(like.dtype)
    per_row = other.dim() > 1 < like.dim() and len(other) == len(like)
    lists = other.reshape(len(other), -1) if per_row else other.reshape(1, -1)
    rows = like.reshape(len(lists), -1)
    places = torch.randint(lists.shape[1], rows.shape, device=like.device)
    return lists.gather(1, places).view(like.shape).to(like.dtype)


class _Drawn(DispatchMode):
    """`with _Drawn() as seen: ...`; `seen.integers` are the tensors that were drawn with what may come again."""

    def __init__(self) -> None:
        super().__init__()
        self.integers: list[torch.Tensor] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__.strip("_") in _DRAWN and is_integer(result) and result.numel() <= DISTINCT:
            self.integers.append(result)
        return result


class _Overwriting(DispatchMode):
    """`with _Overwriting() as seen: ...`; `seen.any` is whether places that a list names were overwritten."""

    def __init__(self) -> None:
        super().__init__()
        self.any = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__.strip("_") in _PUT:
            self.any = True
        return func(*args, **(kwargs or {}))


def distinct_by_chance(reference: Reference, inputs: Inputs) -> frozenset[int]:
    """Which tensors of integers, in the order of `leaves`, hold nothing twice along a dimension though each was drawn
    without regard to the others, as no permutation is; none where the reference overwrites places that come twice."""
    alone = {index for index, tensor in enumerate(leaves(inputs)) if _is_distinct(tensor)}
    if not alone:
        return frozenset()
    try:
        with _Drawn() as drawing:
            drawn = leaves(reference.draw())
        seen = [each.flatten().tolist() for each in drawing.integers]
        alone = {index for index in alone if drawn[index].flatten().tolist() in seen}
        if not alone:
            return frozenset()
        with _Overwriting() as seen_put:
            reference.call(inputs, reference.public)
    except BadTask:  # it does not stand being watched
        return frozenset()
    return frozenset() if seen_put.any else frozenset(alone)


def _is_distinct(tensor: torch.Tensor) -> bool:
    is_list = is_integer(tensor) and tensor.dim() > 0 and 1 < tensor.numel() <= DISTINCT
    return is_list and any(are_distinct(tensor, dim) for dim in range(tensor.dim()))
