"""A few elements of each output on a CPU, read by the judge out of the runner's memory when a call has returned.

What a call has computed must be there by then. A copy of the outputs, made by the runner, cannot show that: whatever
stands behind the copy (a kernel registered for it, a function of the harness that was replaced, a thread that is ahead
of it) may compute what it pretends to copy. The judge chooses the elements and reads them through a descriptor that the
runner has no part in; what is delivered later must be the same, bit for bit.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .buffers import Buffer
from .entropy import ENTROPY
from .tensors import view

PLACES = 16


def place_of(tensor: torch.Tensor) -> list[Any]:
    """Where a plain tensor on the CPU lies: the address of its first element, and its strides in elements."""
    return [_address(tensor), list(tensor.stride())]


_address = torch.Tensor.data_ptr


@dataclass(frozen=True)
class Glimpse:
    """Chosen elements of what belongs into a slot of the output buffer, as they were read."""

    slot: dict[str, Any]
    places: list[int]
    """In the order of elements."""
    found: bytes
    """Their bytes; fewer where not all could be read."""

    def arrived(self, outputs: Buffer) -> bool:
        """Whether the same stands in the slot."""
        if not self.places:
            return True
        there = view(self.slot, outputs).reshape(-1)[torch.tensor(self.places)]
        return bytes(there.view(torch.uint8).tolist()) == self.found


def look(memory: int, told: Any, slots: Sequence[dict[str, Any]], absent: Collection[int]) -> list[Glimpse]:
    """Read elements of each tensor that a runner says lies at a place (`place_of`), save those that it need not have.

    What it tells is not believed: at a wrong place there is something else, or nothing.
    """
    places = told if isinstance(told, list) and len(told) == len(slots) else [None] * len(slots)
    pairs = enumerate(zip(places, slots, strict=True))
    return [_look(memory, place, slot) for index, (place, slot) in pairs if index not in absent]


def _look(memory: int, place: Any, slot: dict[str, Any]) -> Glimpse:
    shape = slot["shape"]
    count = math.prod(shape)
    if count == 0:
        return Glimpse(slot, [], b"")
    # The ends are among them: work that is done in order is unfinished there.
    chosen = [0, count - 1, *(ENTROPY.randrange(count) for _ in range(PLACES))]
    size = getattr(torch, slot["$tensor"]).itemsize
    try:
        address, strides = place
        found = b"".join(os.pread(memory, size, address + size * _offset(at, shape, strides)) for at in chosen)
    except (TypeError, ValueError, OverflowError, OSError):  # what it told is no place
        found = b""
    return Glimpse(slot, chosen, found)


def _offset(place: int, shape: Sequence[int], strides: Sequence[int]) -> int:
    """Of the element with this number, in elements."""
    offset = 0
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        place, at = divmod(place, size)
        offset += at * stride
    return offset
