"""What the tests of the wall share: limits small enough to reach quickly, and patience."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from cuda_l1.config import Limits

ROLES = Path(__file__).parent / "roles"
LIMITS = Limits(memory_bytes=1 << 30, work_bytes=16 << 20, processes=40, log_bytes=1 << 14)


def eventually(condition: Callable[[], bool], timeout_s: float = 20.0) -> bool:
    """Whether `condition` comes true in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
