"""Namespaces of rung R2: no network, own IPC, own process ids with their own /proc, private /tmp and /dev/shm.

A superuser makes them directly, anybody else inside a user namespace that maps only the own id. The keeper calls
`begin` (its next fork is process 1 of the new PID namespace), that process calls `complete`.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from .kernel import libc_call
from .privileges import CAP_SYS_ADMIN, has_capability

NEW_MOUNT, NEW_IPC, NEW_USER, NEW_PID, NEW_NET = 0x00020000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
_NOSUID, _NODEV, _NOEXEC, _BIND, _REC, _PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_PRIVATE_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
_SMALL = "size=16m,mode=0755"


def begin() -> None:
    """Detach this process's future children into a PID namespace. Raises `OSError` when the machine refuses."""
    if has_capability(CAP_SYS_ADMIN):
        unshare("PID namespace", NEW_PID)
        return
    uid, gid = os.getuid(), os.getgid()
    unshare("user and PID namespace", NEW_USER | NEW_PID)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def complete(work_dir: str, mount_at: str, kept: Iterable[str], shared_bytes: int) -> None:
    """Make the other namespaces and the mounts of this process.

    `work_dir` is seen at `mount_at` (below /tmp); of the private folders' former contents only `kept` stays visible;
    /dev/shm holds at most `shared_bytes`. Raises `OSError` when the machine refuses a part.
    """
    unshare("mount, IPC and network namespace", NEW_MOUNT | NEW_IPC | NEW_NET)
    _mount("private mounts", None, "/", None, _REC | _PRIVATE)
    targets = [(work_dir, mount_at)] + [
        (path, path) for path in sorted(kept) if os.path.exists(path) and _is_below(path, _PRIVATE_FOLDERS)
    ]
    sources = [os.open(source, os.O_PATH | os.O_CLOEXEC) for source, _ in targets]  # before they are covered
    for folder in _PRIVATE_FOLDERS:
        if os.path.isdir(folder):
            options = f"size={shared_bytes},mode=1777" if folder == "/dev/shm" else _SMALL
            _mount(f"private {folder}", "tmpfs", folder, "tmpfs", _NOSUID | _NODEV, options)
    for source, (_, target) in zip(sources, targets, strict=True):
        _bind(source, target)
        os.close(source)
    _mount("own /proc", "proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)


def unshare(what: str, flags: int) -> None:
    """unshare(2); raises `OSError` naming `what` was refused."""
    libc_call(what, "unshare", ctypes.c_int(flags))


def _bind(source: int, target: str) -> None:
    if os.path.exists(target):
        pass
    elif stat.S_ISDIR(os.fstat(source).st_mode):
        os.makedirs(target)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        Path(target).touch()
    _mount(f"bind mount at {target}", f"/proc/self/fd/{source}", target, None, _BIND | _REC)


def _mount(what: str, source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    texts = [text.encode() if text is not None else None for text in (source, target, kind, data)]
    libc_call(what, "mount", texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3])


def _is_below(path: str, folders: Iterable[str]) -> bool:
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(os.path.realpath(folder)) for folder in folders)
