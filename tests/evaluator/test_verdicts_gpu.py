"""The most important verdicts on a GPU: outcomes, state, precision, streams, and what the judge's clock sees."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from evaluator_support import LINEAR, QUICK, candidate_of, checks, task_of

from cuda_l1.config import SCREEN, EvaluatorSettings
from cuda_l1.evaluator import Evaluator, eager_candidate
from cuda_l1.types import Evaluation, Outcome

pytestmark = pytest.mark.gpu
TASK = task_of(LINEAR)


@pytest.fixture(scope="module")
def gpu(cache_dir: str) -> Iterator[Evaluator]:
    with Evaluator(EvaluatorSettings(device="cuda", cache_dir=cache_dir)) as opened:
        yield opened


def model_new(forward: str, init: str = "pass") -> str:
    lines = ["class ModelNew(nn.Module):", "    def __init__(self, width):", "        super().__init__()"]
    lines += ["        self.linear = nn.Linear(width, width)", f"        {init}", "    def forward(self, x):"]
    return "\n".join([*lines, *(f"        {line}" for line in forward.splitlines())])


def judged(gpu: Evaluator, body: str, task=TASK) -> Evaluation:
    return gpu.evaluate(task, candidate_of(task, body), protocol=QUICK)


RIGHT = "return torch.relu(self.linear(x))"


def test_the_reference_is_accepted_with_both_clocks(gpu):
    result = gpu.evaluate(TASK, eager_candidate(TASK), protocol=SCREEN)
    assert result.accepted, result.detail
    assert {t.clock for t in result.timings} == {"device", "call"}
    assert result.timing(clock="call").empty_us > 0 and result.peak_bytes and result.reference_peak_bytes
    assert "timed" in {t.kind for t in result.correctness.trials}


@pytest.mark.parametrize(
    ("forward", "outcome"),
    [
        ("return torch.zeros_like(x)", Outcome.WRONG_VALUES),
        ("return torch.relu(self.linear(x.abs()))", Outcome.WRONG_VALUES),
        ("return torch.relu(self.linear(x)).cpu()", Outcome.WRONG_DTYPE),
        ("return torch.relu(self.linear(x)).half()", Outcome.WRONG_DTYPE),
        ("return torch.relu(self.linear(x)).t()", Outcome.WRONG_SHAPE),
        ("return None", Outcome.NO_OUTPUT),
        ("raise KeyError('x')", Outcome.CRASHED),
        ("import os\nos._exit(0)", Outcome.CRASHED),
        ("return torch.empty(1 << 40, device='cuda')", Outcome.OUT_OF_MEMORY),
        ("return torch.relu(self.linear(x)) + 0.1 * torch.randn_like(x)", Outcome.NONDETERMINISTIC),
    ],
)
def test_outcomes(gpu, forward, outcome):
    assert judged(gpu, model_new(forward)).outcome is outcome


def test_an_illegal_access_is_a_crash_and_the_next_verdict_works(gpu):
    beyond = "torch.as_strided(x, (1 << 28,), (1 << 12,)).sum().item()\nreturn torch.relu(self.linear(x))"
    result = judged(gpu, model_new(beyond))
    assert not result.accepted
    assert judged(gpu, model_new(RIGHT)).accepted


@pytest.mark.parametrize("key", ["x.data_ptr()", "x.shape", "0"], ids=["pointer", "shape", "first-call"])
def test_answers_that_are_kept_are_wrong(gpu, key):
    forward = (
        f"k = {key}\nif k not in self.kept: self.kept[k] = torch.relu(self.linear(x))\nreturn self.kept[k].clone()"
    )
    assert judged(gpu, model_new(forward, "self.kept = {}")).outcome is Outcome.WRONG_VALUES


def test_right_in_the_trials_and_wrong_when_timed(gpu):
    forward = "self.kept['n'] = self.kept.get('n', 0) + 1\ny = torch.relu(self.linear(x))\n"
    forward += "return y if self.kept['n'] < 40 else torch.zeros_like(y)"
    result = judged(gpu, model_new(forward, "self.kept = {}"))
    assert result.outcome is Outcome.WRONG_VALUES and "timed call" in result.detail


GRAPH = """
if self.graph is None:
    self.x = x.clone()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.relu(self.linear(self.x))
    torch.cuda.current_stream().wait_stream(side)
    self.graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(self.graph):
        self.y = torch.relu(self.linear(self.x))
self.x.copy_(x)
self.graph.replay()
return self.y
"""


def test_a_graph_is_right_and_its_reused_output_is_noted(gpu):
    result = judged(gpu, model_new(GRAPH.strip(), "self.graph = None"))
    assert result.accepted, result.detail
    assert "reused-output" in checks(result, "note")


WIDE = LINEAR.replace("[32]", "[1024]").replace("16, 32", "256, 1024")


@pytest.mark.parametrize(
    ("forward", "name"),
    [
        ("torch.backends.cuda.matmul.allow_tf32 = True\nreturn torch.relu(self.linear(x))", "tf32"),
        (
            "w, b = self.linear.weight.bfloat16(), self.linear.bias.bfloat16()\n"
            "return torch.relu(F.linear(x.bfloat16(), w, b).float())",
            "relaxed",
        ),
        ("return torch.relu(x @ self.linear.weight.t() + self.linear.bias)", "fp32"),
    ],
    ids=["tf32", "bf16", "fp32"],
)
def test_precision_is_named(gpu, forward, name):
    result = judged(gpu, model_new(forward), task_of(WIDE))
    assert result.accepted and result.precision_class == name, (result.detail, result.correctness)


DELTA = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("last", torch.zeros(64, 128))

        def forward(self, x):
            change = x - 0.5 * self.last
            self.last = x
            return change

    def get_inputs():
        return [torch.randn(64, 128)]
"""


def test_state_that_keeps_an_input(gpu):
    task = task_of(DELTA)
    body = DELTA.replace("class Model(", "class ModelNew(")
    assert judged(gpu, body, task).accepted
    assert judged(gpu, body.replace("x - 0.5 * self.last", "x * 1"), task).outcome is Outcome.WRONG_VALUES


def test_work_on_a_side_stream_that_nobody_waits_for(gpu):
    forward = "side = torch.cuda.Stream()\nwith torch.cuda.stream(side):\n    y = torch.relu(self.linear(x))\nreturn y"
    result = judged(gpu, model_new(forward), task_of(WIDE))
    assert not result.accepted or result.suspects() or "multi-stream" in checks(result)


def test_a_clock_that_lies_does_not_pay(gpu):
    lie = """
    import sys
    _harness = next((m for name, m in sys.modules.items() if name.endswith("guest.cuda_driver")), None)
    if _harness is not None:
        for _kind in vars(_harness).values():
            if isinstance(_kind, type) and hasattr(_kind, "elapsed_us"):
                _kind.elapsed_us = lambda self, other: 0.5
    """
    slow = "for _ in range(20): y = torch.relu(self.linear(x))\nreturn y"
    task = task_of(WIDE)
    body = "\n".join(line[4:] for line in lie.splitlines()) + "\n" + model_new(slow)
    result = judged(gpu, body, task)
    assert "clock-mismatch" in checks(result) and not (result.accepted and not result.suspects())


def test_runners_give_their_memory_back(gpu):
    """Each verdict shares about a gigabyte with its runners; a judge that kept it would show after ten.

    Nothing else may use the card meanwhile.
    """
    task = task_of(LINEAR.replace("16, 32", "1 << 20, 32"))
    assert gpu.evaluate(task, eager_candidate(task), protocol=QUICK).accepted
    free_before, _ = torch.cuda.mem_get_info()
    for _ in range(9):
        assert gpu.evaluate(task, eager_candidate(task), protocol=QUICK).accepted
    free_after, _ = torch.cuda.mem_get_info()
    assert free_before - free_after < 2 << 30


@pytest.mark.parametrize(
    ("forward", "inputs"),
    [
        ("return F.binary_cross_entropy(x, y, reduction='none')", "[torch.rand(64, 96), torch.rand(64, 96).round()]"),
        ("return x.repeat_interleave(y, dim=0, output_size=512)", "[torch.randn(64, 96), torch.full((64,), 8)]"),
        ("return F.embedding(y, x) * 2", "[torch.randn(64, 96), torch.randint(64, (512,))]"),
        ("return F.cross_entropy(x, y, reduction='none')", "[torch.randn(512, 96), torch.randint(96, (512,))]"),
        ("return x.scatter_add(0, y, x.exp())", "[torch.randn(64, 96), torch.randint(64, (64, 96))]"),
    ],
)
def test_inputs_that_would_end_in_an_assertion_are_put_to_nobody(gpu, forward, inputs):
    """After one nothing runs in a process any more, the judge's included."""
    lines = ["import torch", "import torch.nn as nn", "import torch.nn.functional as F", "class Model(nn.Module):"]
    lines += ["    def forward(self, x, y):", f"        {forward}", "def get_inputs():", f"    return {inputs}"]
    task = task_of("\n".join([*lines, "def get_init_inputs():", "    return []", ""]))
    result = gpu.evaluate(task, eager_candidate(task), protocol=QUICK)
    assert result.accepted, result.detail
