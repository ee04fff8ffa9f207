"""New processes of a guest, each of which waits until its keeper has let it begin.

A watcher that looks now and then is outrun by a storm of forks: these take the cores that it needs, and the kernel's
own limit does not hold for the superuser's processes. The keeper counts, and a fork beyond the limit fails as it does
at that one, with EAGAIN. Threads ask nobody: one process makes them one after the other.
See seccomp_unotify(2), Linux 5.5 and newer.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import struct

from . import group

_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_NOTICE_BYTES = 80
_CONTINUE = 1
SPARE = 16
"""So many more than the limit may live: who is above it is ended by the parent, who says why."""


class Forks:
    """The keeper's end. `descriptor`: what `seccomp.restrict` gave; `limit`: threads below `keeper`, all told."""

    def __init__(self, descriptor: int, keeper: int, limit: int) -> None:
        self.descriptor, self._keeper, self._limit = descriptor, keeper, limit + SPARE
        self._left = 0
        self.refused = False

    def answer(self) -> None:
        """Let the process that waits go on, or refuse it."""
        notice = bytearray(_NOTICE_BYTES)
        with contextlib.suppress(OSError):  # it has been killed meanwhile
            fcntl.ioctl(self.descriptor, _RECEIVE, notice)
            if self._left <= 0:  # counting takes a while: so many may begin before the next one
                self._left = self._limit - group.threads(self._keeper)
            may = self._left > 0
            self._left -= 1
            self.refused = self.refused or not may
            error, flags = (0, _CONTINUE) if may else (-errno.EAGAIN, 0)
            fcntl.ioctl(self.descriptor, _SEND, struct.pack("=8sqiI", bytes(notice[:8]), 0, error, flags))
