"""compile: offered over every rewrite that leaves ATen calls alone, and over nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from graphs import Twins, make_task

from cuda_l1.proposers.techniques import compose, load, usable
from cuda_l1.proposers.techniques.draft import Draft, open_draft
from cuda_l1.types import Candidate, Task

XY = "torch.randn(8, 8), torch.randn(8, 8)"
INIT = """self.fc = nn.Linear(8, 8)
self.gate = nn.Linear(8, 8)
self.w = nn.Parameter(torch.randn(8, 8))
self.d = nn.Parameter(torch.randn(8))
self.frozen = nn.BatchNorm1d(8).eval()"""


def task_of(forward: str) -> Task:
    return make_task(forward if "return" in forward else f"return {forward}", XY, INIT, args="x, y")


def compiled(task: Task, technique: str) -> Candidate | None:
    """The candidate of a technique with `compile` around it; None where `compile` is not offered."""
    built = compose(task, [technique, "compile"], "cpu")
    assert built is not None and technique in built.origins[0].techniques, "the rewrite must apply"
    return built if "compile" in built.origins[0].techniques else None


REWRITES = [
    ("identities", "torch.relu(x * 1) + y"),
    ("identities", "(x + 0).exp() @ y"),
    ("identities", "torch.sin(x.t().t()) * y"),
    ("identities", "F.dropout(x, 0.5, False).tanh()"),
    ("identities", "self.fc(x.float()).cos()"),
    ("common_subexpressions", "x.exp() * 2 + x.exp()"),
    ("common_subexpressions", "x.sin().sum() + x.sin().mean()"),
    ("common_subexpressions", "self.fc(x) * torch.sigmoid(self.fc(x))"),
    ("common_subexpressions", "F.layer_norm(x, (8,)) * F.layer_norm(x, (8,)).exp()"),
    ("diagonal_matmul", "torch.diag(self.d) @ x"),
    ("diagonal_matmul", "x @ torch.diag(y[0])"),
    ("reduce_linear", "(x @ y).sum(-1)"),
    ("reduce_linear", "(x @ y).mean(0)"),
    ("fuse_activation", "x * torch.sigmoid(x) + y"),
    ("fuse_activation", "x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))"),
    ("fuse_activation", "self.fc(torch.log1p(x.exp()))"),
    ("fuse_softmax", "e = x.exp()\nreturn e / e.sum(-1, keepdim=True)"),
    ("fuse_softmax", "torch.log(torch.exp(x).sum(-1))"),
    ("fuse_norm", "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)"),
    ("fuse_norm", "m, v = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, correction=0)\n"
                  "return (x - m) / torch.sqrt(v + 1e-5)"),
    ("attention", "torch.softmax(x @ y.mT / 8 ** 0.5, -1) @ y"),
    ("matmul_chain", "(x @ y) @ x[:, :1]"),
    ("in_place", "(x * 2 + y).relu()"),
    ("in_place", "self.fc(x).exp() + y"),
]  # fmt: skip


@pytest.mark.parametrize(("technique", "forward"), REWRITES)
def test_offered_over_rewrites(technique: str, forward: str) -> None:
    built = compiled(task_of(forward), technique)
    assert built is not None and built.source.rstrip().endswith("ModelNew = compiled_as_one_graph(ModelNew)")


UNCHANGED = [
    "self.fc(x)",
    "torch.relu(x * 1) + y",
    "x.exp() * 2 + x.exp()",
    "torch.diag(self.d) @ x",
    "x * torch.sigmoid(x)",
    "torch.softmax(x @ y.mT, -1) @ y",
    "self.frozen(self.fc(x))",
    "(x @ y) @ x[:, :1]",
]


@pytest.mark.parametrize("forward", UNCHANGED)
def test_alone_it_is_a_baseline(forward: str) -> None:
    assert compose(task_of(forward), ["compile"], "cpu") is None


KEPT = [
    ("kept_weights", "x @ torch.softmax(self.w, -1)"),
    ("kept_weights", "F.linear(x, self.w * 2).relu()"),
    ("kept_constants", "x * torch.sin(torch.arange(8))"),
    ("kept_constants", "x.masked_fill(torch.ones(8, 8).triu(1).bool(), 0.0) @ y"),
    ("reduce_linear", "self.fc(x).sum(-1)"),
    ("packed_linear", "self.fc(x) * torch.sigmoid(self.gate(x))"),
    ("merged_linear", "self.gate(self.fc(x)).relu()"),
    ("fold_batch_norm", "self.frozen(self.fc(x))"),
    ("fusion", "(x * 2 + y).relu() * torch.sigmoid(x)"),
    ("inductor", "(x * 2 + y).relu() * torch.sigmoid(x)"),
]


@pytest.mark.parametrize(("technique", "forward"), KEPT)
def test_kept_values_and_generated_code_are_no_part_of_one_graph(technique: str, forward: str) -> None:
    assert compiled(task_of(forward), technique) is None


EMPTY = ["x", "x, y", "{'x': x, 'n': 3}", "None", "(y, [x, 2.5])"]


@pytest.mark.parametrize("forward", EMPTY)
def test_nothing_to_compile(forward: str) -> None:
    assert compiled(task_of(f"return {forward}"), "straight_line") is None


def test_no_wrapper_inside_and_none_without_a_graph() -> None:
    draft = open_draft(task_of("(x * 2 + y).relu()"), "cpu")
    draft.techniques = ("in_place",)
    assert usable(load("compile"), draft)
    draft.wrap.append("captured")
    assert not usable(load("compile"), draft)
    branching = Draft(task_of("x if x.sum() > 0 else y"), "cpu", None, techniques=("tf32",))
    assert not usable(load("compile"), branching)


@pytest.mark.parametrize(
    ("technique", "forward"),
    [
        ("in_place", "self.fc(x).exp() + y"),
        ("fuse_activation", "self.fc(torch.log1p(x.exp()))"),
        ("common_subexpressions", "self.fc(x) * torch.sigmoid(self.fc(x))"),
    ],
)
def test_one_graph_without_a_break_gives_the_values(
    technique: str, forward: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traced by torch.compile itself; the eager backend stands in for Inductor, which takes a C++ compiler seconds."""
    traced = torch.compile
    options: list[dict[str, Any]] = []

    def eagerly(function: Any, **given: Any) -> Any:
        options.append(given)
        return traced(function, backend="eager", **given)

    monkeypatch.setattr(torch, "compile", eagerly)
    task = task_of(forward)
    built = compiled(task, technique)
    assert built is not None
    twins = Twins(task, built.source)
    twins.check(1)
    twins.rewrite_weights(2)
    twins.check(3)
    assert options == [{"fullgraph": True, "dynamic": False}]
