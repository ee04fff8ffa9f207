"""Landlock: which files this process and its children may read, run and write. Needs no privilege.

Rights that the kernel's version (ABI) does not know are left out of the rule set. From ABI 6 on signals and abstract
sockets stay inside the domain too. A process in a domain can trace, or read the memory and the environment of, only
processes of its own domain, on every ABI.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from .kernel import syscall

NEEDED_ABI = 2
"""ABI 1 refuses a rename into another folder, by which Triton publishes what it has compiled."""
SCOPED_SIGNALS_ABI = 6

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_DEVICES = 1 << 6 | 1 << 11
_TRUNCATE, _IOCTL_DEVICE = 1 << 14, 1 << 15
_FIRST_ABI_OF_BITS = ((1, 13), (2, 14), (3, 15), (5, 16))  # (ABI, number of file rights known from it on)
_ALL_NETWORK, _ALL_SCOPES = 0b11, 0b11
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE

READ = _EXECUTE | _READ_FILE | _READ_DIR
LIST = _READ_DIR
DEVICE = _READ_FILE | _WRITE_FILE | _IOCTL_DEVICE | _READ_DIR
OWN_PROCESS = READ | _WRITE_FILE | _TRUNCATE
"""For /proc/PID of the guest itself: libcuda names its threads there and cannot start without."""
WORK = ((1 << 15) - 1) & ~_MAKE_DEVICES


def abi() -> int:
    """The kernel's Landlock version; raises `OSError` where there is none."""
    return syscall("Landlock", _CREATE, None, 0, 1)


def restrict(rules: Iterable[tuple[str, int]], version: int, *, network: bool = False) -> None:
    """Confine this thread and its children to `rules`, pairs of a path and its rights (`READ`, `WORK`, ...).

    `network`: TCP is left alone, for a guest whose network holds nothing but itself.

    Needs no_new_privs or CAP_SYS_ADMIN. A path that does not exist is left out.
    """
    known = (1 << max(bits for since, bits in _FIRST_ABI_OF_BITS if version >= since)) - 1
    fields = [
        known,
        *([0 if network else _ALL_NETWORK] if version >= 4 else []),
        *([_ALL_SCOPES] if version >= 6 else []),
    ]
    attributes = ctypes.create_string_buffer(struct.pack(f"{len(fields)}Q", *fields), 8 * len(fields))
    ruleset = syscall("Landlock rule set", _CREATE, attributes, len(attributes), 0)
    try:
        for path, rights in rules:
            _add(ruleset, path, rights & known)
        syscall("Landlock", _RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _add(ruleset: int, path: str, rights: int) -> None:
    try:
        target = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(target).st_mode):
            rights &= _OF_FILES
        if rights:
            rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, target), 12)
            syscall(f"Landlock rule for {path}", _ADD_RULE, ruleset, 1, rule, 0)
    finally:
        os.close(target)
