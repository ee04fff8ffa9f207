"""Content-addressed results of the build step: what a candidate's compilers wrote, kept for its later runners.

Keyed by candidate, torch and device, so that a candidate can only ever read what it wrote itself. Only the parent
writes here, after the process that built has died.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
import time
from pathlib import Path

from cuda_l1.evaluator.watch import UNCOUNTED, folder_bytes

CACHES = ("extensions", "triton", "inductor", "cuda")
MAX_ENTRY_BYTES = 512 << 20
LONGEST_PATH = 512
"""Characters of a folder's path below its cache: copies begin at longer paths, and Python copies trees by recursion."""
LONGEST_COPY_S = 3600.0


class BuildCache:
    """One folder per key, holding the cache directories of a work directory."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._sweep()

    def _sweep(self) -> None:
        """Remove what processes that were killed while they copied have left."""
        for folder in [*self._root.glob(".new-*"), *self._root.glob(".old-*")]:
            with contextlib.suppress(OSError):
                if time.time() - folder.lstat().st_mtime > LONGEST_COPY_S:
                    shutil.rmtree(folder, ignore_errors=True)

    def has(self, key: str) -> bool:
        """Whether something was kept under this key (an empty entry counts: nothing needed building)."""
        return (self._root / key).is_dir()

    def is_empty(self, key: str) -> bool:
        """Whether the entry holds no file: such a candidate can run anywhere."""
        return not self.has(key) or not any((self._root / key).iterdir())

    def keep(self, key: str, work_dir: Path) -> None:
        """Take over the caches of a dead guest's work directory, replacing what was there.

        What is too large, or cannot be copied (paths too long, say), is left: it will be built again.
        """
        if folder_bytes(work_dir) >= UNCOUNTED:
            return
        found = [name for name in CACHES if _holds_something(work_dir / name)]
        if sum(folder_bytes(work_dir / name, with_holes=True) for name in found) > MAX_ENTRY_BYTES:
            return
        self._root.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=self._root))
        try:
            for name in found:
                _copy(work_dir / name, fresh / name)
        except (OSError, RecursionError):
            shutil.rmtree(fresh, ignore_errors=True)
            return
        target = self._root / key
        old = Path(tempfile.mkdtemp(prefix=".old-", dir=self._root))
        if target.exists():
            os.replace(target, old / "entry")
        os.replace(fresh, target)
        shutil.rmtree(old, ignore_errors=True)

    def copy_to(self, key: str, work_dir: Path) -> None:
        """A private writable copy for a runner, times kept (build systems compare them)."""
        entry = self._root / key
        if entry.is_dir():
            for folder in entry.iterdir():
                shutil.copytree(folder, work_dir / folder.name, symlinks=True, dirs_exist_ok=True)


def _holds_something(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink() and any(folder.iterdir())


def _copy_file(source: str, target: str) -> None:
    """Contents, times and the plain rights: a file that changes its user must not become one of ours."""
    shutil.copy2(source, target)
    os.chmod(target, os.stat(target).st_mode & 0o777)


def _copy(source: Path, target: Path) -> None:
    """Regular files and folders only: a link that a guest planted must not lead the parent anywhere. Raises OSError,
    also for a folder that lies so deep that it could not be copied to wherever else it must go."""
    begin = len(os.fspath(source))

    def links(folder: str, names: list[str]) -> list[str]:
        if len(folder) - begin > LONGEST_PATH:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), folder)
        paths = [os.path.join(folder, name) for name in names]
        return [
            name
            for name, path in zip(names, paths, strict=True)
            if os.path.islink(path) or not (os.path.isfile(path) or os.path.isdir(path))
        ]

    shutil.copytree(source, target, ignore=links, copy_function=_copy_file)
