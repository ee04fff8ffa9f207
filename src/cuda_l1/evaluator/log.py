"""The output of a guest: kept in memory, never blocking its writer, head and tail held under a cap."""

from __future__ import annotations

import fcntl
import os

_GAP = "\n[... {} bytes of output left out ...]\n"


class CappedLog:
    """A memfd that a guest writes to; `trim` bounds it, `text` shows its head and tail.

    A pipe would block the guest while the parent is idle for a timing, a file would fill the disk.
    """

    def __init__(self, cap_bytes: int) -> None:
        self._half = max(cap_bytes // 2, 1)
        self._head: bytes | None = None
        self._tail = b""
        self._left_out = 0
        self._fd = os.memfd_create("log", os.MFD_CLOEXEC)
        fcntl.fcntl(self._fd, fcntl.F_SETFL, os.O_APPEND)  # shared with the guest: it goes on at the new end

    def fileno(self) -> int:
        return self._fd

    def trim(self) -> None:
        """Cut what has been written back to the cap; cheap when there is little of it."""
        size = os.fstat(self._fd).st_size
        if size <= 4 * self._half:
            return
        if self._head is None:
            self._head = os.pread(self._fd, self._half, 0)
        self._tail = os.pread(self._fd, self._half, size - self._half)
        os.ftruncate(self._fd, 0)
        self._left_out += size - self._half

    def text(self, tail_bytes: int | None = None) -> str:
        """What the guest printed, its middle left out when it is long; the last `tail_bytes` of that when given."""
        size = os.fstat(self._fd).st_size
        recent = os.pread(self._fd, 2 * self._half, max(0, size - 2 * self._half))
        if self._head is None and size <= 2 * self._half:
            data = recent
        else:
            head = os.pread(self._fd, self._half, 0) if self._head is None else self._head
            tail = (self._tail + recent)[-self._half :]
            left_out = self._left_out + size - (self._half if self._head is None else 0) - len(tail)
            data = head + _GAP.format(max(left_out, 0)).encode() + tail
        if tail_bytes is not None:
            data = data[-tail_bytes:]
        return data.decode(errors="replace")

    def close(self) -> None:
        """Release the memory. Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
