"""The types hold: told by mypy on CI, on one core beside other tests; elsewhere `make static` says it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(os.environ.get("CI") != "true", reason="`make static` says it here")
@pytest.mark.timeout(1800)
def test_mypy_finds_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
