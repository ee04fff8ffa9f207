"""Compatibility protocols: each accepts what its harness accepts, by its own clock, and nothing of it is a figure."""

from __future__ import annotations

import math

import pytest
import torch
from evaluator_support import LINEAR, candidate_of, checks, task_of

from cuda_l1 import scoring
from cuda_l1.archive.tables import log_speedup
from cuda_l1.config import COMPAT, CUDA_L1, KERNELBENCH, KERNELBENCH_2025, CompatProtocol
from cuda_l1.errors import UsageError
from cuda_l1.evaluator import Evaluator
from cuda_l1.evaluator.guest.compat_check import least_tolerance
from cuda_l1.types import Candidate, Evaluation, Outcome, Task, Weights

TASK = task_of(LINEAR)
SAME = LINEAR.replace("class Model(", "class ModelNew(")


def off_by(error: float) -> str:
    return SAME.replace("torch.relu(self.linear(x))", f"torch.relu(self.linear(x)) + {error}")


def judged(evaluator: Evaluator, protocol: CompatProtocol, body: str, task: Task = TASK) -> Evaluation:
    return evaluator.evaluate(task, candidate_of(task, body), protocol=protocol)


@pytest.mark.parametrize("protocol", COMPAT.values(), ids=COMPAT)
def test_an_honest_candidate_passes_and_has_the_samples_of_the_harness(evaluator, protocol):
    found = judged(evaluator, protocol, SAME)
    assert found.outcome is Outcome.ACCEPTED, found.detail
    assert found.protocol == protocol.name and checks(found) == {"host-clock"}
    assert [trial.kind for trial in found.correctness.trials] == ["allclose"] * protocol.trials
    (timing,) = found.timings
    assert len(timing.pairs) <= protocol.rounds and timing.opponent == "eager"
    for pair in timing.pairs:
        assert len(pair.candidate_us) == len(pair.opponent_us) == protocol.samples
    assert timing.speedup == pytest.approx(sum(math.exp(p.log_ratio) for p in timing.pairs) / len(timing.pairs))


def test_only_the_2025_harness_times_the_reference_in_a_process_of_its_own(evaluator):
    pids = {}
    for protocol in COMPAT.values():
        pair = judged(evaluator, protocol, SAME).timings[0].pairs[0]
        pids[protocol.name] = pair.candidate_pid == pair.opponent_pid
    assert pids == {"cuda-l1": True, "kernelbench": True, "kernelbench-2025": False}


@pytest.mark.parametrize(
    ("protocol", "error", "outcome"),
    [
        (CUDA_L1, 5e-3, Outcome.ACCEPTED),
        (CUDA_L1, 2e-2, Outcome.WRONG_VALUES),
        (KERNELBENCH_2025, 5e-3, Outcome.ACCEPTED),
        (KERNELBENCH, 5e-5, Outcome.ACCEPTED),
        (KERNELBENCH, 5e-4, Outcome.WRONG_VALUES),
    ],
)
def test_each_has_its_own_tolerance(evaluator, protocol, error, outcome):
    found = judged(evaluator, protocol, off_by(error))
    assert found.outcome is outcome, found.detail
    assert found.correctness.precision_class == ("relaxed" if outcome is Outcome.ACCEPTED else None)


def test_what_is_wrong_in_train_mode_only_passes_the_release_and_not_KernelBench(evaluator):
    body = SAME.replace("torch.relu(self.linear(x))", "torch.relu(self.linear(x)) + float(self.training)")
    assert judged(evaluator, CUDA_L1, body).outcome is Outcome.ACCEPTED
    assert judged(evaluator, KERNELBENCH, body).outcome is Outcome.WRONG_VALUES


DROPOUT = """
    class Model(nn.Module):
        def forward(self, x):
            return F.dropout(x, 0.5, self.training)

    def get_inputs():
        return [torch.randn(16, 32)]
"""


def test_dropout_passes_where_the_candidate_is_seeded_as_the_reference_or_compared_in_eval_mode(evaluator):
    task = task_of(DROPOUT)
    body = DROPOUT.replace("class Model(", "class ModelNew(")
    assert judged(evaluator, CUDA_L1, body, task).outcome is Outcome.ACCEPTED
    assert judged(evaluator, KERNELBENCH_2025, body, task).outcome is Outcome.WRONG_VALUES


LAZY = """
    class Later(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func.__name__ == "__get__":
                return super().__torch_function__(func, types, args, kwargs)
            args = [a.compute() if isinstance(a, Later) else a for a in args]
            return func(*args, **(kwargs or {}))

        def compute(self):
            with torch._C.DisableTorchFunctionSubclass():
                return torch.relu(self.owner.linear(self.x))

    class ModelNew(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.linear = nn.Linear(width, width)

        def forward(self, x):
            later = torch.Tensor._make_subclass(Later, torch.empty(16, 32))
            later.owner, later.x = self, x.clone()
            return later
"""


def test_an_answer_that_is_computed_when_it_is_looked_at_passes_KernelBench_and_not_the_release(evaluator):
    for protocol in (KERNELBENCH, KERNELBENCH_2025):
        found = judged(evaluator, protocol, LAZY)
        assert found.outcome is Outcome.ACCEPTED, found.detail
    found = judged(evaluator, CUDA_L1, LAZY)
    assert found.outcome is Outcome.NO_OUTPUT and "Later" in found.detail


REFUSED = (
    SAME
    + """
    def check_input(x):
        return x
"""
)


def test_the_release_refuses_texts_by_what_is_written_in_them(evaluator):
    assert judged(evaluator, KERNELBENCH, REFUSED).outcome is Outcome.ACCEPTED
    found = judged(evaluator, CUDA_L1, REFUSED)
    assert found.outcome is Outcome.BUILD_FAILED and "`input(`" in found.detail


def test_KernelBench_executes_the_candidate_where_the_names_of_the_reference_are(evaluator):
    source = "class ModelNew(Model):\n    def forward(self, x):\n        return F.relu(self.linear(x))\n"
    candidate = Candidate(task_sha=TASK.sha, task_id=TASK.id, source=source)
    for protocol in (KERNELBENCH, KERNELBENCH_2025):
        found = evaluator.evaluate(TASK, candidate, protocol=protocol)
        assert found.outcome is Outcome.ACCEPTED, found.detail
    found = evaluator.evaluate(TASK, candidate, protocol=CUDA_L1)
    assert found.outcome is Outcome.BUILD_FAILED and "Model" in found.detail


@pytest.mark.parametrize("protocol", [KERNELBENCH, KERNELBENCH_2025])
@pytest.mark.parametrize("body", ["x = 1", "import nothing_like_this", "x = ("])
def test_what_cannot_be_loaded_fails_there_too(evaluator, protocol, body):
    found = judged(evaluator, protocol, body)
    assert found.outcome is Outcome.BUILD_FAILED, found.detail


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("x = 1", Outcome.BUILD_FAILED),
        ("ModelNew = 5", Outcome.BUILD_FAILED),
        ("import nothing_like_this", Outcome.BUILD_FAILED),
        (SAME.replace("torch.relu(self.linear(x))", "self.linear(x)[:4]"), Outcome.WRONG_SHAPE),
        (SAME.replace("torch.relu(self.linear(x))", "self.linear(x).double()"), Outcome.WRONG_DTYPE),
        (SAME.replace("torch.relu(self.linear(x))", "5"), Outcome.NO_OUTPUT),
        (SAME.replace("torch.relu(self.linear(x))", "self.gone(x)"), Outcome.CRASHED),
        (SAME.replace("return torch", "import os; os._exit(3); return torch"), Outcome.CRASHED),
        (SAME.replace("torch.relu(self.linear(x))", "self.linear(x) * float('nan')"), Outcome.WRONG_VALUES),
    ],
)
def test_what_does_not_work_has_its_outcome(evaluator, body, outcome):
    found = judged(evaluator, CUDA_L1, body)
    assert found.outcome is outcome, found.detail
    assert not found.timings


def test_several_outputs_cannot_be_compared(evaluator):
    task = task_of(LINEAR.replace("torch.relu(self.linear(x))", "self.linear(x), x"))
    body = LINEAR.replace("class Model(", "class ModelNew(")
    found = judged(evaluator, KERNELBENCH, body, task)
    assert found.outcome is Outcome.WRONG_SHAPE and "one tensor" in found.detail


LABELS = """
    class Model(nn.Module):
        def forward(self, x, labels):
            return F.cross_entropy(x, labels)

    def get_inputs():
        return [torch.randn(16, 32), torch.randint(0, 32, (16,))]
"""


def test_KernelBench_casts_labels_to_fp32_and_its_own_reference_fails(evaluator):
    task = task_of(LABELS)
    body = LABELS.replace("class Model(", "class ModelNew(")
    found = judged(evaluator, KERNELBENCH, body, task)
    assert found.outcome is Outcome.CRASHED and "the reference itself fails" in found.detail
    assert judged(evaluator, KERNELBENCH_2025, body, task).outcome is Outcome.ACCEPTED


SLOWS_THE_REFERENCE = """
    import time

    pause, real = time.sleep, torch.relu

    def slow(x):
        pause(0.002)
        return real(x)

    torch.relu = slow
""" + SAME.replace("torch.relu(", "real(")


@pytest.mark.alone  # what others compute beside it may take longer than the pause
def test_what_a_candidate_sets_globally_reaches_the_reference_where_they_share_a_process(evaluator):
    """Such a figure is believed, as there; and it counts for nothing here."""
    shared, apart = (judged(evaluator, p, SLOWS_THE_REFERENCE) for p in (KERNELBENCH, KERNELBENCH_2025))
    assert shared.accepted and apart.accepted
    assert shared.timing().speedup > 2 * apart.timing().speedup
    assert not scoring.counts(shared) and not scoring.counts(shared, "relaxed")
    assert scoring.reward(shared) <= 1.0 and log_speedup(shared) is None


def test_the_release_gives_up_on_a_slow_candidate(evaluator):
    body = "import time\n    pause = time.sleep\n" + SAME.replace("return torch", "pause(0.02); return torch")
    found = judged(evaluator, CUDA_L1, "    " + body)
    assert found.accepted and len(found.timings[0].pairs) == 1 and found.timings[0].speedup < 0.3


def test_a_file_of_weights_is_refused(evaluator, tmp_path):
    weights = Weights(path=str(tmp_path / "w"), sha256="0" * 64)
    task = Task(suite="test", name="weights", source=TASK.source, weights=weights)
    candidate = Candidate(task_sha=task.sha, task_id=task.id, source=SAME)
    with pytest.raises(UsageError, match="file of weights"):
        evaluator.evaluate(task, candidate, protocol=KERNELBENCH)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.complex64])
def test_the_least_tolerance_is_where_allclose_turns(dtype):
    torch.manual_seed(0)
    one = (torch.randn(50) * 300).to(dtype)
    two = one + torch.arange(50).remainder(3).to(dtype)
    needed = least_tolerance(one, two)
    assert torch.allclose(one, two, atol=needed * 1.001, rtol=needed * 1.001)
    assert not torch.allclose(one, two, atol=needed * 0.99, rtol=needed * 0.99)


def test_one_bool_that_differs_takes_a_tolerance_of_a_half_at_least():
    assert least_tolerance(torch.tensor([True, False]), torch.tensor([True, True])) == 0.5


def test_infinities_are_close_to_themselves_and_nothing_is_close_to_nan():
    inf, nan = torch.tensor([1.0, math.inf]), torch.tensor([1.0, math.nan])
    assert least_tolerance(inf, inf.clone()) == 0.0
    assert least_tolerance(nan, nan.clone()) == math.inf
    assert least_tolerance(torch.empty(0), torch.empty(0)) == 0.0
