"""Folders for work in progress, in the system's temporary folder. What a killed process left behind goes with the next.

Each holds a lock file that its process keeps locked; the kernel gives the lock back when that process dies, however it
dies. A folder of ours whose lock is free therefore belongs to nobody any more.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Self

PREFIX = "cuda-l1-"
_LOCK = ".held-by-an-evaluator"


class WorkFolder:
    """A fresh folder below the temporary one; `remove` takes it away, else `sweep` does once this process is dead."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path, self._lock = path, lock

    @classmethod
    def create(cls) -> Self:
        """Raises `OSError` when the temporary folder takes nothing."""
        while True:
            path = Path(tempfile.mkdtemp(prefix=PREFIX))
            lock = _held(path, create=True)
            if lock is not None:
                path.chmod(0o711)  # a guest that gave up the superuser's id must reach its folder, not see the others
                return cls(path, lock)

    def remove(self) -> None:
        """Delete it and all that is in it. Idempotent."""
        if self._lock >= 0:
            _remove(self.path)
            os.close(self._lock)
            self._lock = -1


def remove_tree(folder: Path) -> None:
    """Remove a folder with whatever a guest has left there: nested deeper than Python recurses, or shut to its owner.
    What cannot be removed stays."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if folder.is_dir() and not folder.is_symlink():
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            with contextlib.suppress(OSError):
                subprocess.run([*command, "--", str(folder)], capture_output=True, check=False)


def sweep() -> list[Path]:
    """Remove the folders that dead processes of this user left in the temporary folder; which ones they were.

    A folder is touched only when it is ours (owner, name and lock file) and its lock is free.
    """
    removed = []
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in [e for e in entries if e.name.startswith(PREFIX)]:
            if _is_own_folder(entry) and (lock := _held(Path(entry.path), create=False)) is not None:
                _remove(Path(entry.path))
                os.close(lock)
                removed.append(Path(entry.path))
    return removed


def _is_own_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.getuid()
    except OSError:  # removed meanwhile
        return False


def _held(folder: Path, *, create: bool) -> int | None:
    """The descriptor of the folder's lock, taken; None when there is none, or somebody holds it or has removed it."""
    path = folder / _LOCK
    try:
        lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o600)
    except OSError:
        if create and folder.exists():  # the disk is full, say
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), os.stat(path, follow_symlinks=False)):
            return lock
    except OSError:
        pass
    os.close(lock)
    return None


def _remove(folder: Path) -> None:
    """The lock file goes last: a folder that cannot be emptied yet is found again by the next sweep."""
    with contextlib.suppress(OSError):
        for child in list(folder.iterdir()):
            if child.name == _LOCK:
                continue
            if child.is_dir() and not child.is_symlink():
                remove_tree(child)
            else:
                child.unlink(missing_ok=True)
        if [child.name for child in folder.iterdir()] == [_LOCK]:
            (folder / _LOCK).unlink()
            folder.rmdir()
