"""Waiting for what other processes do, and looking whether they are still there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from cuda_l1.evaluator.guest import group


def eventually(condition: Callable[[], object], seconds: float = 30.0) -> bool:
    """Whether `condition` comes true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def gone(pids: Iterable[int], seconds: float = 30.0) -> bool:
    """Whether all of these processes end in time; one that nobody has reaped yet has ended."""
    return eventually(lambda: all(group.state_of(pid) in (None, "Z") for pid in pids), seconds)


def name_of(pid: int) -> str:
    """What a process is called; empty where there is none."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
