"""What tests that build a library with PyTorch's loader need of the machine."""

from __future__ import annotations

import shutil

import pytest

needs_ninja = pytest.mark.skipif(
    not (shutil.which("g++") and shutil.which("ninja")),
    reason="no g++ or no ninja; install them with: apt-get install g++ ninja-build",
)
