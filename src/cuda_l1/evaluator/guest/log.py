"""The output of a guest, head and tail, in a block of memory that the keeper writes and the parent reads.

The guest writes into a pipe that its keeper drains, so it never blocks for long, and neither memory nor disk fills up
however much it prints and however long the parent is busy with something else.
"""

from __future__ import annotations

import os
import struct

_HEADER = struct.Struct("<QQ")  # capacity of each half, bytes written in all
_GAP = "\n[... {} bytes of output left out ...]\n"


class CappedLog:
    """The first and the last `cap_bytes / 2` bytes of a stream, in a memfd that both sides hold."""

    def __init__(self, fd: int) -> None:
        """Take over the descriptor of an existing log."""
        self._fd = fd
        self._half, _ = _HEADER.unpack(os.pread(fd, _HEADER.size, 0))

    @classmethod
    def create(cls, cap_bytes: int) -> CappedLog:
        """A new, empty one."""
        fd = os.memfd_create("log", os.MFD_CLOEXEC)
        os.pwrite(fd, _HEADER.pack(max(cap_bytes // 2, 1), 0), 0)
        return cls(fd)

    def fileno(self) -> int:
        return self._fd

    def append(self, data: bytes) -> None:
        """Add `data`; its middle is dropped as needed."""
        total = self._total()
        room = max(self._half - total, 0)
        if room:
            os.pwrite(self._fd, data[:room], _HEADER.size + total)
        late = data[room:]
        position = max(total - self._half, 0) + max(len(late) - self._half, 0)
        for chunk in _wrapped(late[-self._half :], position % self._half, self._half):
            os.pwrite(self._fd, chunk[1], _HEADER.size + self._half + chunk[0])
        os.pwrite(self._fd, _HEADER.pack(self._half, total + len(data)), 0)

    def text(self, tail_bytes: int | None = None) -> str:
        """What was printed, its middle left out when it is long; the last `tail_bytes` of that when given."""
        total = self._total()
        head = os.pread(self._fd, min(total, self._half), _HEADER.size)
        late = max(total - self._half, 0)
        ring = os.pread(self._fd, min(late, self._half), _HEADER.size + self._half)
        if late > self._half:
            start = late % self._half
            ring = _GAP.format(late - self._half).encode() + ring[start:] + ring[:start]
        data = head + ring
        return (data if tail_bytes is None else data[-tail_bytes:]).decode(errors="replace")

    def close(self) -> None:
        """Release this side's hold on the memory. Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _total(self) -> int:
        return int(_HEADER.unpack(os.pread(self._fd, _HEADER.size, 0))[1])


def _wrapped(data: bytes, position: int, size: int) -> list[tuple[int, bytes]]:
    """`data` laid into a ring of `size` bytes from `position` on: pairs of place and bytes."""
    first = size - position
    return [(position, data[:first]), (0, data[first:])] if len(data) > first else [(position, data)]
