"""What a profile of a call says, and what is believed of a runner's word about it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from evaluator_support import LINEAR, QUICK, candidate_of, task_of

from cuda_l1.evaluator import Evaluator
from cuda_l1.evaluator.guest.profiling import MOST_PARTS, NAME_CHARACTERS, believable, kernels_of, operators_of

TASK = task_of(LINEAR)


def kernel(name: str, start_us: float, us: float) -> Any:
    """As torch's profiler gives an event of a device."""
    return SimpleNamespace(name=lambda: name, start_ns=lambda: int(1e3 * start_us), duration_ns=lambda: int(1e3 * us))


def test_on_a_cpu_each_operator_has_its_own_time() -> None:
    layer, x = torch.nn.Linear(256, 256), torch.randn(64, 256)
    with torch.no_grad():
        told = believable(operators_of(lambda: layer(torch.relu(layer(x)))))
    assert told is not None and told["kind"] == "operators"
    parts = {part["name"]: part for part in told["parts"]}
    assert parts["aten::addmm"]["calls"] == 2 and parts["aten::relu"]["calls"] == 1
    times = [part["us"] for part in told["parts"]]
    assert times == sorted(times, reverse=True) and all(us > 0 for us in times)
    assert sum(times) + told["outside_us"] == pytest.approx(told["total_us"], rel=0.1)


def test_on_a_gpu_kernels_are_added_up_by_name_without_the_flush() -> None:
    flush, copy = kernel("Memset (Device)", 0.0, 60.0), kernel("Memcpy DtoD", 95.0, 2.0)
    events = [kernel("relu", 80.0, 5.0), copy, flush, kernel("gemm", 61.0, 15.0), kernel("relu", 86.0, 5.5)]
    told = believable(kernels_of([*events, kernel("Memset (Device)", 90.0, 2.5)]))
    assert told is not None and (told["kind"], told["outside_us"]) == ("kernels", None)
    assert [tuple(part.values()) for part in told["parts"]] == [
        ("gemm", 1, 15.0),
        ("relu", 2, 10.5),
        ("Memset (Device)", 1, 2.5),
        ("Memcpy DtoD", 1, 2.0),
    ]
    assert told["total_us"] == 30.0
    assert kernels_of([]) == {"kind": "kernels", "outside_us": None, "total_us": 0, "parts": []}


def test_a_profile_is_short_whatever_a_runner_sends() -> None:
    many = {"kind": "kernels", "total_us": 9.0, "parts": [["k" * 1000, 1, 1.0]] * 1000, "outside_us": None}
    told = believable(many)
    assert told is not None and len(told["parts"]) == MOST_PARTS
    assert all(len(part["name"]) == NAME_CHARACTERS for part in told["parts"])


@pytest.mark.parametrize(
    "changed",
    [
        {"kind": "verdict"},
        {"kind": ["kernels"]},
        {"total_us": 10**400},
        {"total_us": float("nan")},
        {"total_us": True},
        {"outside_us": -1.0},
        {"outside_us": "much"},
        {"parts": "many"},
        {"parts": [["name", 1]]},
        {"parts": [[1, 1, 1.0]]},
        {"parts": [["name", 1.5, 1.0]]},
        {"parts": [["name", 10**400, 1.0]]},
        {"parts": [["name", 1, float("inf")]]},
    ],
)
def test_what_is_no_profile_is_none(changed: dict[str, Any]) -> None:
    right = {"kind": "operators", "total_us": 9.0, "parts": [["aten::add", 1, 1.0]], "outside_us": 1.0}
    assert believable(right) is not None
    assert believable({**right, **changed}) is None
    assert believable(None) is None and believable([right]) is None


@pytest.mark.e2e
def test_a_verdict_holds_a_profile_where_it_is_asked_for_and_the_candidate_fast_enough(evaluator: Evaluator) -> None:
    right = """
        class ModelNew(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.linear = nn.Linear(width, width)

            def forward(self, x):
                return F.relu_(F.linear(x, self.linear.weight, self.linear.bias))
    """
    asked = QUICK.model_copy(update={"profile_above": 0.0})
    profile = evaluator.evaluate(TASK, candidate_of(TASK, right), protocol=asked).profile
    assert profile is not None and profile.kind == "operators"
    calls = {part.name: part.calls for part in profile.parts}
    assert calls["aten::addmm"] == 1 and calls["aten::relu_"] == 1
    assert profile.outside_us is not None and 0 < profile.outside_us < profile.total_us
    beyond = QUICK.model_copy(update={"profile_above": 1e6})
    assert evaluator.evaluate(TASK, candidate_of(TASK, right), protocol=beyond).profile is None
