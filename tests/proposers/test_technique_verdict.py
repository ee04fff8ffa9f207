"""A rewritten candidate through the whole evaluator, weights changed and inputs stressed; fused ones stand beside."""

from __future__ import annotations

import pytest
from graphs import candidate, make_task

from cuda_l1.config import SCREEN, EvaluatorSettings
from cuda_l1.evaluator import Evaluator
from cuda_l1.types import Outcome


@pytest.mark.e2e
def test_a_moved_reduction_is_accepted_in_single_precision() -> None:
    task = make_task("y = self.fc(x)\nreturn (y * 2).sum(-1)", "torch.randn(512, 256)", "self.fc = nn.Linear(256, 192)")
    with Evaluator(EvaluatorSettings(device="cpu")) as evaluator:
        found = evaluator.evaluate(
            task, candidate(task, "reduce_linear"), protocol=SCREEN, baselines=[], best_of=[], best_so_far=None
        )
    assert found.outcome is Outcome.ACCEPTED, found.detail
    assert found.precision_class == "fp32"
