"""Builds the stand-in for libcuda.so.1 that lets the driver code be tested without a GPU."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def build(directory: Path) -> str:
    """Compile fake_libcuda.c into `directory` and return the library's path; skips the test without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or pytest.skip("needs a C compiler")
    built = str(directory / "libfake.so")
    source = str(Path(__file__).with_suffix(".c"))
    subprocess.run([compiler, "-shared", "-fPIC", "-pthread", source, "-o", built], check=True)
    return built
