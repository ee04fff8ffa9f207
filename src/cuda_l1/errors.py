"""The error tree. One line of text each: what was wrong, where, and what to do.

    CudaL1Error
    ├── UsageError             the user's input is wrong                       (exit 2)
    │   ├── TaskError          a task file, module or input description
    │   │   └── NoRoomError    a task does not fit the device, or not beside what else is on it
    │   └── CandidateError     a candidate file that cannot be read at all
    ├── ArchiveError           the database is locked, newer than us, damaged, or its disk full (exit 3)
    ├── EndpointError          a language model cannot be asked, or gave no answer (exit 3)
    ├── OutOfTimeError         an evaluation was given up: nobody waits that long  (exit 3)
    └── InfrastructureError    the machine failed: no GPU, disk full, driver fault (exit 3)

A *bad candidate* is never an exception: it is an `Outcome` (see `types.py`).
"""

from __future__ import annotations

import errno
from typing import Literal


class CudaL1Error(Exception):
    """Root of everything this package raises on purpose; printed as one line without a traceback."""

    exit_code = 3


class UsageError(CudaL1Error):
    """The command line, the arguments or a file of the user's is wrong."""

    exit_code = 2


class TaskError(UsageError):
    """A task cannot be loaded: missing file, no `Model`, a constructor that raises, NaN in its own output."""


class NoRoomError(TaskError):
    """A task does not fit the device; where others work on it too, it may alone."""


class CandidateError(UsageError):
    """A candidate file cannot be read as text."""


class ArchiveError(CudaL1Error):
    """The archive cannot be used: locked, written by a newer version, damaged, or on a disk that is full or fails. The
    next verdict could not be recorded either, so this ends a suite of tasks, and a fault of the machine need not."""


class EndpointError(CudaL1Error):
    """A language model cannot be asked, or gave no answer that means anything."""

    def __init__(
        self, message: str, *, lasting: bool = False, kind: Literal["", "unreachable", "refused", "unknown"] = ""
    ) -> None:
        super().__init__(message)
        self.lasting = lasting
        """Whether asking again soon would fail the same way: unreachable, refused, too slow."""
        self.kind = kind
        """`refused`: the key; `unknown`: the address or the model."""


class OutOfTimeError(CudaL1Error):
    """An evaluation was given up when the time was over that its caller has for it: no verdict on the candidate."""


class InfrastructureError(CudaL1Error):
    """The machine is at fault, not the candidate: retried, then reported, never recorded against a candidate."""


def remedy(error: OSError) -> str:
    """What to do about a limit of this shell's that a process ran into, as the end of a line; else empty."""
    limits = {errno.EMFILE: "open files with `ulimit -n 4096`", errno.EFBIG: "file sizes with `ulimit -f unlimited`"}
    return f"; raise the limit on {limits[error.errno]}" if error.errno in limits else ""
