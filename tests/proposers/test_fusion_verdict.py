"""Fused candidates through the whole evaluator: built without a device, sandboxed, judged and timed."""

from __future__ import annotations

import pytest
from graphs import candidate, make_task

from cuda_l1.config import SCREEN, EvaluatorSettings
from cuda_l1.evaluator import Evaluator
from cuda_l1.types import Outcome

TASKS = {
    "rows": make_task(
        "return F.softmax(x * 2 + y, -1) * y", "torch.randn(256, 512), torch.randn(512)", args="x, y"
    ),
    "state": make_task("return F.relu(self.norm(x)) * 2", "torch.randn(32, 16, 64)", "self.norm = nn.BatchNorm1d(16)"),
}  # fmt: skip


@pytest.mark.e2e
@pytest.mark.parametrize("name", sorted(TASKS))
def test_accepted_in_single_precision(name: str) -> None:
    """Right under secret inputs, other weights, odd offsets and stressed inputs; buffers are compared too."""
    task = TASKS[name]
    with Evaluator(EvaluatorSettings(device="cpu")) as evaluator:
        found = evaluator.evaluate(
            task, candidate(task, "fusion"), protocol=SCREEN, baselines=[], best_of=[], best_so_far=None
        )
    assert found.outcome is Outcome.ACCEPTED, found.detail
    assert found.precision_class == "fp32"
