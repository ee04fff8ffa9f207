"""Tests that are many and slow: where slow ones are left out, a part of them runs, another at each commit."""

from __future__ import annotations

import functools
import shutil
import subprocess
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest


@functools.cache
def _commit() -> str:
    """So that all processes of a run agree. Empty without a checkout."""
    git = shutil.which("git")
    command = [git or "", "rev-parse", "HEAD"]
    return subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True).stdout if git else ""


def in_turn(shares: int) -> int:
    """Which of so many parts is due; 0 without a checkout."""
    return int(_commit()[:8] or "0", 16) % shares


def is_due(name: str, shares: int) -> bool:
    """Whether what is called so is among the one in so many that are due."""
    return zlib.crc32(f"{_commit()} {name}".encode()) % shares == 0


def slow_unless_due(number: int, shares: int, share: int) -> Sequence[pytest.MarkDecorator]:
    """The mark of the test with this number."""
    return [pytest.mark.slow] * (number % shares != share)
