"""What a call of a reference takes, found behind the wall without taking it."""

from __future__ import annotations

import pytest

from cuda_l1.evaluator import Evaluator
from cuda_l1.types import Task

pytestmark = pytest.mark.e2e

TEXT = """import torch


class Model(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = torch.nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        {body}


def get_inputs():
    return [torch.randn(1 << 20, 4096)]


def get_init_inputs():
    return [4096]
"""
INPUT, WEIGHT = 4 * 4096 << 20, 4 * 4096 * 4096


def task(body: str) -> Task:
    return Task(suite="file", name="large", source=TEXT.format(body=body))


def test_what_is_alive_together_counts_and_nothing_is_allocated(evaluator: Evaluator) -> None:
    """16 GiB of inputs, far beyond what the guest may have."""
    assert evaluator.footprint(task("return self.linear(x)[:1]")) == pytest.approx(2 * INPUT + WEIGHT, rel=1e-2)
    # Two intermediates at a time, however many there are.
    chain = "x = x.sin(); x = x.cos(); x = x.sin(); return x"
    assert evaluator.footprint(task(chain)) == pytest.approx(3 * INPUT + WEIGHT, rel=1e-2)
    assert evaluator.footprint(task("return x.sum().item() * x")) is None
    assert evaluator.footprint(task("raise SystemExit(3)")) is None
    assert evaluator.footprint(task("import os; os._exit(3)")) is None
