"""A technique that fails ends nothing, and is told; of the built-in workloads none makes one fail."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from graphs import applies, check, make_task
from torch._subclasses.fake_tensor import DynamicOutputShapeException

from cuda_l1.errors import TaskError
from cuda_l1.proposers.techniques import load
from cuda_l1.proposers.techniques import proposer as module
from cuda_l1.proposers.techniques.proposer import TechniqueProposer
from cuda_l1.tasks import load_tasks
from cuda_l1.types import Task

NAMES = ["fuse_activation", "in_place", "straight_line"]
TASK = make_task("return (x * torch.sigmoid(x) + 1).relu()", "torch.randn(4, 6)")


def offered(proposer: TechniqueProposer, task: Task) -> list[tuple[str, ...]]:
    """Every subset that the proposer builds when nothing is measured: each technique alone, then all rewrites."""
    found = []
    while (candidate := proposer.propose(task, [])) is not None:
        found.append(candidate.origins[0].techniques)
    return found


@pytest.mark.parametrize(
    ("step", "error", "says"),
    [
        ("apply", ValueError("no\nmore"), "in_place: ValueError: no"),
        ("applies", KeyError("x"), "in_place: KeyError: 'x'"),
        ("apply", TaskError("cannot be printed: it calls `f`"), "in_place: TaskError: cannot be printed: it calls `f`"),
        ("apply", AssertionError(), "in_place: AssertionError"),
        ("apply", DynamicOutputShapeException("?"), "in_place: a size in its graph depends on data"),
    ],
)
def test_a_failing_technique_is_told_and_the_others_go_on(
    step: str, error: Exception, says: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(draft: Any) -> Any:
        raise error

    proposer = TechniqueProposer("cpu", techniques=NAMES)
    assert proposer.failures == []
    monkeypatch.setattr(load("in_place"), step, fail)
    with caplog.at_level(logging.INFO):
        assert offered(proposer, TASK)[:2] == [("fuse_activation",), ("straight_line",)]
    assert proposer.failures == [says]
    assert f"generated: could not be built: {says}" in caplog.messages


def test_text_that_cannot_be_printed_is_a_failure_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def unprintable(draft: Any) -> None:
        node = next(node for node in draft.graph_module.graph.nodes if node.op == "call_function")
        node.args = (node.args[0], object())

    monkeypatch.setattr(load("in_place"), "apply", unprintable)
    proposer = TechniqueProposer("cpu", techniques=["in_place"])
    assert offered(proposer, TASK) == []
    (line,) = proposer.failures
    assert line.startswith("in_place: TaskError: cannot be printed: no literal for a object")


def test_a_task_whose_graph_cannot_be_opened_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(task: Task, device: str) -> None:
        raise RuntimeError("no graph today")

    monkeypatch.setattr(module, "open_draft", broken)
    proposer = TechniqueProposer("cpu", techniques=NAMES)
    assert offered(proposer, TASK) == [] and proposer.failures == ["capture: RuntimeError: no graph today"]


UNSIZED = {
    "nonzero": "return torch.nonzero(x.relu() - x.sigmoid()).float().sum(0) * 2 + 1",
    "masked select": "y = torch.tanh(x) * 2 + 1; return torch.masked_select(y, x > 0).sum() * torch.tensor(2.0)",
    "boolean index": "y = x[x.sum(-1) > 0]; return torch.softmax(y @ x.t() / 4, -1) @ x + 0",
    "unique": "u, i = torch.unique((x * 4).int(), return_inverse=True); return F.layer_norm(u[i] * x.cos(), (16,))",
    "written back": "m = x.sum(-1) > 0; out = torch.zeros_like(x); out[m] = x[m] * 3; return out.relu() * x.tanh() + x",
}


@pytest.mark.parametrize("kind", UNSIZED)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_sizes_that_depend_on_data_stop_no_technique_elsewhere(kind: str, device: str) -> None:
    """What is proposed is right, and what wants to know sizes leaves those alone without a word."""
    task = make_task(UNSIZED[kind], "torch.randn(12, 16)")
    names = [name for name in (t.name for t in TechniqueProposer(device, "relaxed").techniques) if name != "inductor"]
    proposer = TechniqueProposer(device, "relaxed", names)
    assert ("straight_line",) in offered(proposer, task) and proposer.failures == []
    if device == "cpu":
        found = offered(TechniqueProposer("cpu", techniques=["fusion", "in_place", "straight_line"]), task)
        for name in {names[0] for names in found}:
            check(task, name)


def test_fusion_works_beside_sizes_that_depend_on_data() -> None:
    assert applies("fusion", make_task(UNSIZED["written back"], "torch.randn(12, 16)"))
    assert not applies("inductor", make_task(UNSIZED["written back"], "torch.randn(12, 16)"))


def test_a_forward_without_a_graph_is_told() -> None:
    proposer = TechniqueProposer("cpu", techniques=NAMES)
    assert offered(proposer, make_task("return x if x.sum() > 0 else -x", "torch.randn(4)")) == []
    (line,) = proposer.failures
    assert line.startswith("rewrites of its graph: Model: cannot be traced: its control flow depends on data; give")


WITHOUT_INDUCTOR = [
    name for name in (t.name for t in TechniqueProposer("cpu", "relaxed").techniques) if name != "inductor"
]


@pytest.mark.parametrize("task", load_tasks("builtin"), ids=lambda task: task.name)
def test_nothing_fails_over_the_built_in_workloads(task: Task) -> None:
    proposer = TechniqueProposer("cpu", "relaxed", WITHOUT_INDUCTOR)
    assert offered(proposer, task) and proposer.failures == []
