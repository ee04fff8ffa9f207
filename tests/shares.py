"""Tests that are many and slow: where slow ones are left out, a part of them runs, another at each commit."""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest


@functools.cache
def in_turn(shares: int) -> int:
    """Which of so many parts is due: by the commit, so that all processes of a run agree. 0 without a checkout."""
    git = shutil.which("git")
    command = [git or "", "rev-parse", "HEAD"]
    told = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True).stdout if git else ""
    return int(told[:8] or "0", 16) % shares


def slow_unless_due(number: int, shares: int, share: int) -> Sequence[pytest.MarkDecorator]:
    """The mark of the test with this number."""
    return [pytest.mark.slow] * (number % shares != share)
