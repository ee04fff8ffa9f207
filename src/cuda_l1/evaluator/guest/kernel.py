"""The few Linux calls that Python's standard library lacks, through ctypes. Each raises `OSError` when refused."""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Any

PR_SET_PDEATHSIG, PR_SET_NAME, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 15, 36, 38

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def check(result: int, what: str) -> int:
    """`result`, or the `OSError` of a call that returned -1, with `what` was tried."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(what: str, number: int, *arguments: Any) -> int:
    """A raw system call; integers travel as 64-bit values."""
    wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return check(_libc.syscall(ctypes.c_long(number), *wide), what)


def prctl(what: str, option: int, *arguments: int) -> int:
    """prctl(2); missing arguments are zero, as several options demand."""
    padded = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
    return check(_libc.prctl(ctypes.c_int(option), *padded), what)


def set_subreaper() -> None:
    """Become the parent of every orphan below this process."""
    prctl("subreaper", PR_SET_CHILD_SUBREAPER, 1)


def no_new_privileges() -> None:
    """From here on no exec raises privileges, for this thread and its children."""
    prctl("no_new_privs", PR_SET_NO_NEW_PRIVS, 1)


def set_name(name: str) -> None:
    """The name that `ps` shows; cut to 15 bytes."""
    _libc.prctl(PR_SET_NAME, ctypes.c_char_p(name.encode()[:15]), 0, 0, 0)


def die_with_parent(parent: int, number: int) -> None:
    """Ask for signal `number` when the parent dies, and end at once if that has already happened.

    Across a PID namespace `getppid` is 0, which says only that the parent is outside.
    """
    prctl("parent-death signal", PR_SET_PDEATHSIG, number)
    if os.getppid() not in (parent, 0):
        os.kill(os.getpid(), signal.SIGKILL)


def libc_call(what: str, name: str, *arguments: Any) -> int:
    """A function of the C library that returns -1 and sets errno on failure."""
    return check(getattr(_libc, name)(*arguments), what)
