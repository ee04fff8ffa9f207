"""What is skipped for want of a package that CI installs fails on CI, and is skipped elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MODULES = {
    "whole": 'pytest.importorskip("absent_package", reason="needs transformers and TRL")\ndef test_it(): pass',
    "whole_without_reason": 'pytest.importorskip("absent_package")\ndef test_it(): pass',
    "one": 'def test_it(): pytest.importorskip("absent_package", reason="a data set is parquet")',
    "one_without_reason": 'def test_it(): pytest.importorskip("absent_package")',
    "not_provided": 'def test_it(): pytest.skip("no NVIDIA GPU")',
}


@pytest.mark.parametrize("ci", ["true", ""])
def test_an_absence_is_a_failure_on_ci_alone(tmp_path: Path, ci: str) -> None:
    for name in ("conftest.py", "shares.py"):
        (tmp_path / name).write_text(Path(__file__).with_name(name).read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\ntimeout = 60\n")
    for name, body in MODULES.items():
        (tmp_path / f"test_{name}.py").write_text(f"import pytest\n{body}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:xdist", "--continue-on-collection-errors"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "CI": ci, "PYTEST_ADDOPTS": ""}, capture_output=True, text=True
    )
    said = done.stdout.splitlines()
    failed = {line.split()[1] for line in said if line.startswith(("ERROR ", "FAILED "))}
    skipped = sum(int(line.split()[1].strip("[]")) for line in said if line.startswith("SKIPPED "))
    absent = {"test_whole.py", "test_whole_without_reason.py"}
    absent |= {"test_one.py::test_it", "test_one_without_reason.py::test_it"}
    assert failed == (absent if ci else set()), done.stdout
    assert skipped == (1 if ci else len(MODULES)) and done.returncode == (1 if ci else 0), done.stdout + done.stderr
