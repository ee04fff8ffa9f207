"""A rewritten candidate through the whole evaluator, weights changed and inputs stressed; fused ones stand beside."""

from __future__ import annotations

import pytest
from graphs import candidate, make_task

from cuda_l1 import scoring
from cuda_l1.config import SCREEN, EvaluatorSettings
from cuda_l1.evaluator import Evaluator
from cuda_l1.proposers.baselines import named
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


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("init", "body"),
    [
        ("self.norm = nn.BatchNorm1d(32)", "return self.norm(self.a(x))"),
        (
            "self.b = nn.Linear(32, 32)\nself.b.weight = self.a.weight\n"
            "self.register_buffer('scale', torch.rand(32))\nself.shift = torch.rand(32)\nself.last = [torch.rand(32)]",
            "return self.b(torch.relu(self.a(x) * self.scale + self.shift)) * self.last[0]",
        ),
    ],
    ids=["running statistics", "tied weights, buffers, attributes"],
)
def test_the_bf16_baseline_takes_other_weights_and_counts_where_relaxed_is_asked_for(init: str, body: str) -> None:
    task = make_task(body, "torch.randn(64, 32)", f"self.a = nn.Linear(32, 32)\n{init}")
    (bf16,) = named(task, "cpu", ["bf16"])
    with Evaluator(EvaluatorSettings(device="cpu")) as evaluator:
        found = evaluator.evaluate(task, bf16, protocol=SCREEN)
    assert found.outcome is Outcome.ACCEPTED and found.correctness, found.detail
    assert "weights" in {trial.kind for trial in found.correctness.trials}
    assert {finding.check for finding in found.suspects()} <= {"precision", "busy-machine"}
    assert scoring.counts(found, "relaxed") or found.suspects(ignore=("precision",))
    assert not scoring.counts(found)
