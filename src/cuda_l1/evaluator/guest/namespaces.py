"""Namespaces of rung R2: no network, own IPC, own process ids with their own /proc, private /tmp and /dev/shm.

A superuser makes them directly, anybody else inside a user namespace that maps only the own id. The keeper calls
`begin` (its next fork is process 1 of the new PID namespace), that process calls `complete`.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import stat
import struct
from collections.abc import Iterable
from pathlib import Path

from .kernel import libc_call
from .privileges import CAP_SYS_ADMIN, has_capability

NEW_MOUNT, NEW_IPC, NEW_USER, NEW_PID, NEW_NET = 0x00020000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
_NOSUID, _NODEV, _NOEXEC, _BIND, _REC, _PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_PRIVATE_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
_SMALL = "size=16m,mode=0755"
_SOFTWARE = {"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix", "gnu", "etc", "dev", "proc", "sys"}
"""Folders below / in which nobody keeps sockets that a guest could reach."""
_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x1 | 0x40


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


def complete(work_dir: str, mount_at: str, kept: Iterable[str], shared_bytes: int, *, loopback: bool = False) -> None:
    """Make the other namespaces and the mounts of this process.

    `work_dir` is seen at `mount_at` (below /tmp); of the private folders' former contents only `kept` stays visible;
    /dev/shm holds at most `shared_bytes`. `loopback`: processes of this guest can talk to each other over a network of
    their own; every folder but those of the system's software is private then, since a file may be somebody's socket.
    Raises `OSError` when the machine refuses a part.
    """
    unshare("mount, IPC and network namespace", NEW_MOUNT | NEW_IPC | NEW_NET)
    private: tuple[str, ...] = _PRIVATE_FOLDERS
    if loopback:
        _loopback_up()
        private = (*_others(), "/dev/shm")
    _mount("private mounts", None, "/", None, _REC | _PRIVATE)
    places = {place for path in kept if os.path.exists(path) for place in _places(path, private)}
    targets = [(work_dir, mount_at), *((place, place) for place in sorted(places))]
    sources = [os.open(source, os.O_PATH | os.O_CLOEXEC) for source, _ in targets]  # before they are covered
    for folder in private:
        if os.path.isdir(folder):
            options = f"size={shared_bytes},mode=1777" if folder == "/dev/shm" else _SMALL
            _mount(f"private {folder}", "tmpfs", folder, "tmpfs", _NOSUID | _NODEV, options)
    for source, (_, target) in zip(sources, targets, strict=True):
        _bind(source, target)
        os.close(source)
    if loopback and stat.S_ISSOCK(os.stat("/dev/log").st_mode if os.path.exists("/dev/log") else 0):
        _mount("closed /dev/log", "/dev/null", "/dev/log", None, _BIND)
    _mount("own /proc", "proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)


def _others() -> tuple[str, ...]:
    """Folders below / that hold no software of the system."""
    with os.scandir("/") as entries:
        found = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    return tuple(sorted(path for path in found if os.path.basename(path) not in _SOFTWARE))


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH22x", b"lo", _UP_AND_RUNNING))


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


def _places(path: str, folders: Iterable[str]) -> set[str]:
    """Where below `folders` a path stands: what it is called, and what it leads to. A link there, to a virtual
    environment say, is covered with its folder; one elsewhere may lead there, and nothing can be mounted on it."""
    called, real = os.path.abspath(path), os.path.realpath(path)
    return {
        place
        for folder in folders
        for place, within in ((called, folder), (real, os.path.realpath(folder)))
        if Path(place).is_relative_to(within)
    }
