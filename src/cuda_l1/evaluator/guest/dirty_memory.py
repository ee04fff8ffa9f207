"""Memory as it may be: an answer of which a part was never written is right where that part happens to hold zeros.

Fresh pages of the kernel do, and so does most of a GPU's memory in a process that has just begun. Bound before any
candidate is loaded.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from .entropy import ENTROPY

_M_PERTURB = -6
"""glibc's mallopt: what is allocated is filled with the complement of a byte; 0 ends it."""
_COPIES, _BYTES = 4, 1 << 30
_empty, _fill = torch.empty, torch.Tensor.fill_


def dirt() -> int:
    """A byte that makes large numbers of all floating dtypes, and of integers none that is zero."""
    return ENTROPY.randrange(0x50, 0x7F) | ENTROPY.choice((0, 0x80))


def _mallopt() -> Any:
    try:
        return ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return None


class DirtyMemory:
    """What a runner's allocations hold on `device`."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._perturb: Any = _mallopt() if device == "cpu" else None

    @contextlib.contextmanager
    def holding(self, byte: int | None, slots: Sequence[dict[str, Any]]) -> Iterator[None]:
        """For one call new memory holds `byte` everywhere, at most 254; None: what it does anyway. On a GPU that is
        memory of the sizes of `slots`, the outputs, which torch's allocator hands out again."""
        if byte is None:
            yield
            return
        if self._device != "cpu":
            self._leave(byte, slots)
        if self._perturb is not None:
            self._perturb(_M_PERTURB, byte ^ 0xFF)
        try:
            yield
        finally:
            if self._perturb is not None:
                self._perturb(_M_PERTURB, 0)

    def _leave(self, byte: int, slots: Sequence[dict[str, Any]]) -> None:
        sizes = [torch.Size(slot["shape"]).numel() * getattr(torch, slot["$tensor"]).itemsize for slot in slots]
        if 0 < _COPIES * sum(sizes) <= _BYTES:
            for left in [_empty(size, dtype=torch.uint8, device=self._device) for size in sizes * _COPIES]:
                _fill(left, byte)
