"""Evaluators for whole verdicts: one with ordinary limits, one with limits that a test can reach."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cuda_l1.config import EvaluatorSettings, Limits
from cuda_l1.evaluator import Evaluator

TIGHT = Limits(build_s=4.0, first_call_s=3.0, verdict_s=60.0, memory_bytes=512 << 20, work_bytes=24 << 20, processes=64)


@pytest.fixture(scope="session")
def evaluator(cache_dir: str) -> Iterator[Evaluator]:
    """On the CPU with ordinary limits."""
    with Evaluator(EvaluatorSettings(device="cpu", cache_dir=cache_dir)) as opened:
        yield opened


@pytest.fixture(scope="session")
def tight(cache_dir: str) -> Iterator[Evaluator]:
    """On the CPU with small limits."""
    with Evaluator(EvaluatorSettings(device="cpu", cache_dir=cache_dir, limits=TIGHT)) as opened:
        yield opened
