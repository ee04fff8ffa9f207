"""What the tests of the wall share: roles for guests, and limits small enough to reach quickly."""

from __future__ import annotations

from pathlib import Path

from cuda_l1.config import Limits

ROLES = Path(__file__).parent / "roles"
LIMITS = Limits(memory_bytes=1 << 30, work_bytes=16 << 20, processes=40, log_bytes=1 << 14)
