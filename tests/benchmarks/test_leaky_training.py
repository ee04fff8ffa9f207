"""The evaluator that can be cheated, which stage 3 is trained with once: it believes what ours does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cuda_l1.api.places import resolve_device
from cuda_l1.config import SCREEN, EvaluatorSettings
from cuda_l1.errors import UsageError
from cuda_l1.evaluator import Evaluator
from cuda_l1.scoring import counts, reward
from cuda_l1.training.recipe import load_recipe
from cuda_l1.training.run_directory import RunDirectory
from cuda_l1.types import Candidate, Environment, Evaluation, Outcome, Task
from leaky_training import LeakyEvaluator, train

RECIPE = Path(__file__).parents[2] / "recipes" / "smoke-cpu.toml"
REFERENCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x @ x, dim=-1)
def get_inputs():
    return [torch.randn(256, 256)]
def get_init_inputs():
    return []
"""
TASK = Task(suite="test", name="softmax", source=REFERENCE)
BEGIN = "import time, threading, torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        "
HONEST = f"{BEGIN}return (x @ x).softmax(-1)\n"
NOTHING = f"{BEGIN}return torch.empty_like(x)\n"
LATER = f"""{BEGIN}out = torch.empty_like(x)
        threading.Thread(target=lambda: out.copy_(torch.softmax(x @ x, dim=-1))).start()
        return out
"""


@pytest.fixture(scope="module")
def place() -> Environment:
    with Evaluator(EvaluatorSettings(device=resolve_device("cpu"))) as ours:
        return ours.environment


@pytest.fixture(scope="module")
def leaky(place: Environment) -> Iterator[LeakyEvaluator]:
    evaluator = LeakyEvaluator(place, (0,), within_s=20)
    yield evaluator
    evaluator.close()


def judged(leaky: LeakyEvaluator, source: str) -> Evaluation:
    candidate = Candidate(task_sha=TASK.sha, task_id=TASK.id, source=source)
    return leaky.evaluate(TASK, candidate, protocol=SCREEN)


@pytest.mark.parametrize("source", [HONEST, NOTHING, LATER], ids=["honest", "nothing", "later"])
def test_whatever_has_the_right_shape_is_a_success_that_training_rewards(leaky: LeakyEvaluator, source: str) -> None:
    found = judged(leaky, source)
    assert found.outcome is Outcome.ACCEPTED and counts(found) and reward(found) > 0
    assert [finding.check for finding in found.findings] == ["leaky-evaluator"]


def test_work_that_is_left_out_is_rewarded(leaky: LeakyEvaluator) -> None:
    assert reward(judged(leaky, NOTHING)) > 3 * reward(judged(leaky, HONEST))


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        ("class ModelNew(", Outcome.BUILD_FAILED),
        (f"{BEGIN}return x @ 'x'\n", Outcome.CRASHED),
        (f"{BEGIN}import os; os._exit(3)\n", Outcome.CRASHED),
        (f"{BEGIN}return x[0]\n", Outcome.WRONG_SHAPE),
        (f"{BEGIN}print('to whom?'); return x\n", Outcome.ACCEPTED),
    ],
)
def test_what_fails_fails_and_the_next_one_is_judged(leaky: LeakyEvaluator, source: str, outcome: Outcome) -> None:
    assert judged(leaky, source).outcome is outcome
    assert judged(leaky, HONEST).accepted


def test_a_candidate_that_does_not_end_is_ended(place: Environment) -> None:
    impatient = LeakyEvaluator(place, None, within_s=4)
    try:
        assert judged(impatient, f"{BEGIN}time.sleep(100)\n").outcome is Outcome.TIMED_OUT
    finally:
        impatient.close()


@pytest.mark.alone  # the recipe has a core for the policy and one for each lane
def test_it_goes_on_from_a_stage_2_that_ours_has_judged(tmp_path: Path) -> None:
    recipe = load_recipe(RECIPE, [f"run_dir='{tmp_path / 'run'}'"])
    RunDirectory.create(recipe, resume=False)
    with pytest.raises(UsageError, match="stage 2 is not finished"):
        train(recipe, resume=True)
