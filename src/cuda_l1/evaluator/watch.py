"""The watcher of one guest: memory, processes and work-directory size, read from /proc when asked.

There is no thread: the parent must be idle while anything is timed, so its own wait loop calls `look`.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from cuda_l1.config import Limits
from cuda_l1.evaluator.guest import group

ExitReason = Literal["memory", "disk", "processes", "deadline", "stopped"]

_ENTRY = 1024  # bytes of a file or folder at the least: an empty one takes a place on the disk, too
_BLOCK = 512  # bytes, in which stat counts whatever the file system's own are
UNCOUNTED = 1 << 62
"""Bytes that stand for more than any limit."""
_WALK_SHARE = 0.05  # at most this share of the parent's time goes into measuring work directories


class Watcher:
    """Measures what descends from a keeper against the limits."""

    def __init__(self, keeper: int, work_dir: Path, limits: Limits) -> None:
        self._keeper, self._work_dir, self._limits = keeper, work_dir, limits
        self._next_walk = 0.0
        self.peak_bytes = 0

    def look(self) -> ExitReason | None:
        """The limit that is exceeded now, or None."""
        pids = group.descendants(self._keeper)
        each = [memory_and_threads(pid) for pid in pids]
        held = sum(memory for memory, _ in each)
        if held > self._limits.memory_bytes:
            held = sum(map(proportional_bytes, pids))
        self.peak_bytes = max(self.peak_bytes, held)
        if sum(threads for _, threads in each) > self._limits.processes:
            return "processes"
        if held > self._limits.memory_bytes:
            return "memory"
        return "disk" if self._work_dir_is_full() else None

    def _work_dir_is_full(self) -> bool:
        start = time.monotonic()
        if start < self._next_walk:
            return False
        size = folder_bytes(self._work_dir) + self._unnamed_bytes()
        end = time.monotonic()
        self._next_walk = end + (end - start) / _WALK_SHARE
        return size > self._limits.work_bytes

    def _unnamed_bytes(self) -> int:
        """Bytes on disk of the files without a name that are held open, which no folder shows."""
        try:
            device = self._work_dir.stat().st_dev
        except OSError:  # it is gone
            return 0
        sizes = {}
        for pid in group.descendants(self._keeper):
            for file in _open_files(pid):
                if stat.S_ISREG(file.st_mode) and file.st_nlink == 0 and file.st_dev == device:
                    sizes[file.st_ino] = file.st_blocks * _BLOCK
        return sum(sizes.values())


def _open_files(pid: int) -> Iterator[os.stat_result]:
    """Those that a process has open, as far as it is there and ours to see."""
    with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                yield entry.stat()


def memory_and_threads(pid: int) -> tuple[int, int]:
    """Bytes of anonymous and shared memory (no files), pages shared with a fork's parent included, and threads."""
    fields = _fields(pid, "status")
    return _bytes(fields, "RssAnon", "RssShmem", "VmSwap"), int(fields.get("Threads", "0"))


def proportional_bytes(pid: int) -> int:
    """The same memory, a page shared by n processes counted as 1/n: exact in sum, and slow for large processes.

    Where the kernel does not show it to us, the upper bound of `memory_and_threads` stands.
    """
    fields = _fields(pid, "smaps_rollup")
    return _bytes(fields, "Pss_Anon", "Pss_Shmem", "SwapPss") if fields else memory_and_threads(pid)[0]


def _fields(pid: int, name: str) -> dict[str, str]:
    try:
        text = Path(f"/proc/{pid}/{name}").read_text()
    except OSError:  # gone, or not ours to see
        return {}
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


def _bytes(fields: dict[str, str], *names: str) -> int:
    return 1024 * sum(int(fields[name].split()[0]) for name in names if name in fields)


def folder_bytes(folder: Path, *, with_holes: bool = False) -> int:
    """Bytes on disk of everything below `folder`; links are not followed, what vanishes meanwhile does not count.
    `with_holes`: as many as a copy takes, which fills the holes of files. `UNCOUNTED` where a folder cannot be looked
    into: it is shut to its owner, or nested so deep that no path leads there."""
    total = 0
    waiting = [os.fspath(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    found = entry.stat(follow_symlinks=False)
                    size = max(_ENTRY, found.st_blocks * _BLOCK)
                    total += max(size, found.st_size) if with_holes else size
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return UNCOUNTED
    return total
