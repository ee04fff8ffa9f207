"""Parts of each output on a CPU, read by the judge out of the runner's memory when a call has returned.

What a call has computed must be there by then. A copy of the outputs, made by the runner, cannot show that: whatever
stands behind the copy (a kernel registered for it, a function of the harness that was replaced, a thread that is ahead
of it) may compute what it pretends to copy. The judge chooses the parts and reads them through a descriptor that the
runner has no part in; what is delivered later must be the same, bit for bit. Reading that takes longer than it should
has been held up, as by a lock on the runner's memory while something goes on in it.

A small output is read whole. Of a large one both ends are, and boxes of elements that lie near one another in memory:
what is computed late may be a few rows in which most of the work is.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .buffers import Buffer
from .entropy import ENTROPY

WHOLE = 1 << 20
"""Bytes between the first and the last element of an output up to which it is read whole."""
BOX, LEAST_BOXES, SHARE, MOST_APART = 1 << 16, 16, 1 / 16, 512
"""Of a larger one boxes of so many bytes at the most are read: so many full ones, or so many that they are this share
of it. Where elements lie apart a box holds fewer of them, and the last is the most boxes that make up for it."""

HELD_UP_FACTOR, HELD_UP_US = 3.0, 50.0
"""A look takes up to 1.6 times as long as reading as much from a file of memory, and more in pages that were never
touched."""


def place_of(tensor: torch.Tensor) -> list[Any]:
    """Where a plain tensor on the CPU lies: the address of its first element, and its strides in elements."""
    return [_address(tensor), list(tensor.stride())]


_address = torch.Tensor.data_ptr


@dataclass(frozen=True)
class _Box:
    """Some elements next to one another along each dimension, and the memory from the first of them to the last."""

    starts: list[int]
    sizes: list[int]
    strides: list[int]
    memory: bytearray

    def is_in(self, delivered: torch.Tensor) -> bool:
        there = delivered[tuple(slice(at, at + size) for at, size in zip(self.starts, self.sizes, strict=True))]
        found = torch.frombuffer(self.memory, dtype=delivered.dtype).as_strided(self.sizes, self.strides)
        return torch.equal(_bits(there), _bits(found))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    wide = {2: torch.int16, 4: torch.int32, 8: torch.int64}  # single bytes take four times as long to compare
    return tensor.contiguous().reshape(-1).view(wide.get(tensor.itemsize, torch.uint8))


@dataclass(frozen=True)
class Glimpse:
    """What was read of what is to be delivered at one place of an answer."""

    place: int
    boxes: list[_Box]
    is_there: bool = True
    """Whether anything could be read where it was said to lie."""

    def arrived(self, delivered: Sequence[torch.Tensor]) -> bool:
        """Whether the same has been delivered. Of what will be compared this is asked of the judge's own copy: what
        lies in the buffer may be another thing by then."""
        return self.is_there and all(box.is_in(delivered[self.place]) for box in self.boxes)


def look(memory: int, told: Any, slots: Sequence[dict[str, Any]], absent: Collection[int]) -> list[Glimpse]:
    """Read parts of each tensor that a runner says lies at a place (`place_of`), save those that it need not have.

    What it tells is not believed: at a wrong place there is something else, or nothing.
    """
    places = told if isinstance(told, list) and len(told) == len(slots) else [None] * len(slots)
    pairs = enumerate(zip(places, slots, strict=True))
    return [_look(memory, index, told_place, slot) for index, (told_place, slot) in pairs if index not in absent]


def held_up_us(took_us: float, seen: Sequence[Glimpse], outputs: Buffer, known: dict[tuple[int, ...], float]) -> float:
    """By how much a look has taken longer than reading as much from a buffer of the judge's own, with room for memory
    that is touched for the first time; microseconds. `known`: what that takes, by what is read. 0 where an output is
    not read whole, or where elements lie so far apart that more is read than the buffer holds: choosing boxes and
    reading memory that no cache has takes several times as long."""
    reads = tuple(len(box.memory) for each in seen for box in each.boxes)
    if sum(reads) > outputs.nbytes or len(reads) > len(seen):
        return 0.0
    if reads not in known:
        known[reads] = min(_own_us(reads, outputs) for _ in range(3))
    return max(0.0, took_us - HELD_UP_FACTOR * known[reads] - HELD_UP_US)


def _own_us(reads: Sequence[int], outputs: Buffer) -> float:
    descriptor, begin = outputs.fileno(), time.perf_counter_ns()
    for count in reads:
        os.preadv(descriptor, [bytearray(count)], 0)
    return (time.perf_counter_ns() - begin) / 1e3


def _look(memory: int, index: int, place: Any, slot: dict[str, Any]) -> Glimpse:
    shape = slot["shape"]
    if math.prod(shape) == 0:
        return Glimpse(index, [])
    itemsize = getattr(torch, slot["$tensor"]).itemsize
    boxes = []
    try:
        address, strides = place
        sizes, count = _sizes(shape, strides, itemsize)
        strides = [stride if size > 1 else 0 for stride, size in zip(strides, shape, strict=True)]  # as good as any
        for starts in _starts(shape, sizes, count):
            begin = address + itemsize * _extent(starts, strides)
            read = bytearray(itemsize * (1 + _extent([size - 1 for size in sizes], strides)))
            if os.preadv(memory, [read], begin) != len(read):
                return Glimpse(index, [], is_there=False)
            boxes.append(_Box(starts, sizes, strides, read))
    except (TypeError, ValueError, OverflowError, OSError):  # what it told is no place
        return Glimpse(index, [], is_there=False)
    return Glimpse(index, boxes)


def _extent(places: Sequence[int], strides: Sequence[int]) -> int:
    return sum(place * stride for place, stride in zip(places, strides, strict=True))


def _sizes(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[list[int], int]:
    """How many elements a box has along each dimension, most where they lie nearest, and how many boxes are read.
    Raises ValueError for what are no strides."""
    if len(strides) != len(shape) or not all(type(stride) is int and stride >= 0 for stride in strides):
        raise ValueError("no strides")
    count = math.prod(shape)
    if itemsize * max(count, 1 + _extent([size - 1 for size in shape], strides)) <= WHOLE:
        return list(shape), 1
    sizes, room = [1] * len(shape), BOX // itemsize - 1
    for dim in sorted(range(len(shape)), key=strides.__getitem__):
        others = math.prod(sizes)
        fits = 1 + room // strides[dim] if strides[dim] else shape[dim]
        sizes[dim] = max(1, min(shape[dim], fits, BOX // itemsize // others))
        room -= (sizes[dim] - 1) * strides[dim]
    full, held = max(LEAST_BOXES, int(SHARE * count * itemsize) // BOX), math.prod(sizes) * itemsize
    return sizes, max(full, min(MOST_APART, full * BOX // held))


def _starts(shape: Sequence[int], sizes: Sequence[int], count: int) -> list[list[int]]:
    """Where boxes begin. The ends are among them: work that is done in order is unfinished there."""
    last = [size - part for size, part in zip(shape, sizes, strict=True)]
    chosen = [[0] * len(shape), last] + [[ENTROPY.randrange(each + 1) for each in last] for _ in range(count)]
    return chosen if any(last) else chosen[:1]
