"""Giving up what a superuser has: capabilities, and the user id where an unprivileged one can read what it must."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Iterable
from pathlib import Path

from .kernel import prctl, syscall

NOBODY = 65534
CAP_SETUID, CAP_SYS_ADMIN = 7, 21

_CAPSET = {"x86_64": 126, "aarch64": 91}
_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_SECUREBITS, _PR_CAP_AMBIENT = 4, 24, 28, 47
_AMBIENT_CLEAR_ALL = 4
_NO_ROOT_LOCKED = 0b11  # exec as user 0 grants nothing, for good
_VERSION_3 = 0x20080522
_LAST_CAPABILITY = 63


def has_capability(number: int) -> bool:
    """Whether this process effectively holds a capability."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> number & 1)
    return False


def drop_capabilities(nobody_gets: str | None = None) -> None:
    """Give up every capability, the bounding set included, so that no exec brings one back.

    `nobody_gets`: become the unprivileged user on the way and hand it that folder. For a superuser only.
    """
    _empty_bounding_set()  # first: the other steps take away the right to do this one
    if nobody_gets is not None:
        _become_nobody(nobody_gets)
    prctl("ambient set", _PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL)
    header = ctypes.create_string_buffer(struct.pack("Ii", _VERSION_3, 0), 8)
    syscall("capset", _CAPSET[os.uname().machine], header, ctypes.create_string_buffer(24))


def _empty_bounding_set() -> None:
    try:
        prctl("securebits", _PR_SET_SECUREBITS, _NO_ROOT_LOCKED)
        for number in range(_LAST_CAPABILITY + 1):
            prctl("bounding set", _PR_CAPBSET_DROP, number)
    except OSError as error:
        # EPERM: a plain user, whose exec grants nothing under no_new_privs. EINVAL: past the kernel's last capability.
        if error.errno not in (errno.EPERM, errno.EINVAL):
            raise


def can_become_nobody() -> bool:
    """Whether this is a superuser outside any user namespace that lacks the unprivileged id."""
    if not has_capability(CAP_SETUID):
        return False
    ranges = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    return any(int(first) <= NOBODY < int(first) + int(count) for first, _, count in ranges)


def _become_nobody(work_dir: str) -> None:
    for folder, _, files in os.walk(work_dir):
        for path in (folder, *(os.path.join(folder, name) for name in files)):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    # Otherwise its own /proc/self would stay the superuser's, and libcuda could not name its threads.
    prctl("dumpable", _PR_SET_DUMPABLE, 1)


def open_to_all(paths: Iterable[str]) -> bool:
    """Whether every path that exists can be reached, and read (a device also written), by an unprivileged user."""
    return all(reachable_by_all(path) and _readable_by_all(path) for path in paths if os.path.exists(path))


def reachable_by_all(path: str) -> bool:
    """Whether an unprivileged user may pass through every folder above `path`."""
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in Path(os.path.realpath(path)).parents)


def _readable_by_all(path: str) -> bool:
    mode = os.stat(path).st_mode
    wanted = 0o005 if stat.S_ISDIR(mode) else 0o006 if stat.S_ISCHR(mode) else 0o004
    return mode & wanted == wanted
