"""A reference that misbehaves is a task with a reason, never a candidate's fault, and the next verdict is right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from evaluator_support import LINEAR, QUICK, candidate_of, task_of

from cuda_l1.config import EvaluatorSettings, Limits
from cuda_l1.errors import TaskError
from cuda_l1.evaluator import Evaluator, eager_candidate

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

HONEST = """
    class ModelNew(nn.Module):
        def forward(self, x):
            return x.clamp_min(0)
"""
REFERENCE = """
    AT_IMPORT

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            IN_CONSTRUCTOR

        def forward(self, x):
            IN_FORWARD
            return torch.relu(x)

    def get_inputs():
        return [torch.randn(16, 32)]
"""
SEGFAULT = "import ctypes; ctypes.string_at(0)"
LATE = "import ctypes; __name__ != 'reference_task' and "  # not in the judge, but where it is timed against


@pytest.fixture(scope="module")
def hurried(cache_dir: str) -> Iterator[Evaluator]:
    limits = Limits(build_s=6.0, first_call_s=1.0, verdict_s=6.0, memory_bytes=512 << 20)
    with Evaluator(EvaluatorSettings(device="cpu", cache_dir=cache_dir, limits=limits)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("place", "text", "told"),
    [
        ("AT_IMPORT", "import time; time.sleep(1000)", "took longer than 6 s"),
        ("IN_FORWARD", "import time; time.sleep(1000)", "took longer than 6 s"),
        ("AT_IMPORT", SEGFAULT, "signal 11"),
        ("IN_FORWARD", SEGFAULT, "signal 11"),
        ("IN_FORWARD", f"{LATE}ctypes.string_at(0)", "signal 11"),
        pytest.param("IN_FORWARD", f"{LATE}__import__('time').sleep(1000)", "took longer", marks=pytest.mark.slow),
        ("AT_IMPORT", "raise SystemExit(0)", "SystemExit"),
        ("IN_FORWARD", "import os; os._exit(0)", "code 0"),
        ("IN_CONSTRUCTOR", "self.x = torch.ones(1 << 44)", "alloc"),
        ("IN_CONSTRUCTOR", "self.x = [torch.ones(1 << 22) for _ in range(2000)]", "memory|took longer than"),
    ],
    ids=["hang-import", "hang", "segfault-import", "segfault", "segfault-timed", "hang-timed", "exit", "_exit", "huge",
         "many"],
)  # fmt: skip
def test_it_is_the_tasks_fault(hurried: Evaluator, place: str, text: str, told: str) -> None:
    body = REFERENCE.replace(place, text)
    for other in ("AT_IMPORT", "IN_CONSTRUCTOR", "IN_FORWARD"):
        body = body.replace(other, "pass")
    task = task_of(body, name="bad")
    with pytest.raises(TaskError, match=told) as caught:
        hurried.evaluate(task, candidate_of(task, HONEST), protocol=QUICK)
    said = str(caught.value)
    assert said.startswith("test/bad@") and "\n" not in said and "None" not in said
    good = task_of(LINEAR)
    assert hurried.evaluate(good, eager_candidate(good), protocol=QUICK).accepted


def test_one_that_prints_a_lot_is_judged_all_the_same(hurried: Evaluator) -> None:
    body = REFERENCE.replace("AT_IMPORT", "print('y' * (30 << 20))").replace("IN_FORWARD", "print('z' * 100_000)")
    task = task_of(body.replace("IN_CONSTRUCTOR", "pass"))
    result = hurried.evaluate(task, candidate_of(task, HONEST), protocol=QUICK)
    assert result.accepted and len(result.log) <= 4000, result.detail
