"""Drafts: capture takes no memory, printed candidates compute what tasks compute, normal form keeps values."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from graphs import Twins, applies, candidate, check, make_task, namespace

from cuda_l1.proposers.techniques import compose
from cuda_l1.proposers.techniques import draft as drafts
from cuda_l1.proposers.techniques.draft import Draft, open_draft, render
from cuda_l1.tasks import task_from_module
from cuda_l1.types import Task

INIT = """self.fc = nn.Linear(6, 4)
self.bn = nn.BatchNorm1d(4)
self.rnn = nn.GRU(6, 3, batch_first=True)
self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
self.register_buffer('t', torch.arange(4.0))
self.plain = torch.ones(4)"""
FORWARDS = [
    "return self.fc(x)",
    "return self.bn(self.fc(x)).relu_()",
    "for layer in self.layers:\n    x = layer(x[:, :4]).relu()\nreturn x",
    "return {'a': self.fc(x), 'b': (x.exp(), [x.sum()])}",
    "return self.rnn(x[None])[0]",
    "y = self.fc(x)\ny += self.t\ny[:, 0] = 3\ny.mul_(2)\nreturn y",
    "y = x.clone()\ny[1] += x[0]\nv = y.view(-1)\nv.neg_()\nreturn y, v",
    "return self.fc(x) + self.plain",
    "return x + torch.tensor([1.0, 2, 3, 4, 5, 6]), torch.arange(3, device=x.device)",
    "with torch.no_grad():\n    y = x.sin()\nreturn y.add_(1)",
    "return torch.stack([f(x) for f in (torch.sin, torch.cos)]).unbind(0)",
    "a, b = x.clone().split(3, 1)\na = a.relu()\nreturn torch.cat([a, b.sigmoid_()], 1)",
    "y = torch.zeros(4, 4, dtype=x.dtype)\ny.fill_diagonal_(2)\nreturn x[:, :4] @ y",
    "return x.topk(2, 1).values, x.max(1).indices",
    "return (x * float('inf')).clamp(-1, 1)",
    "out = x.new_empty(4, 6)\nout.copy_(x)\nout[out > 0] = 0\nreturn out",
    "return F.dropout(self.fc(x), 0.5, False), F.one_hot(x.argmax(1), 6)",
    "y = x.t()\nreturn y.contiguous().view(-1)",
    "h = x[:, :4]\nfor _ in range(3):\n    h = torch.tanh(self.layers[0](h) + h)\nreturn h",
    "return x * torch.tensor(2.0) + torch.tensor(3.0) * x.pow(torch.tensor(2.0))",
    "return torch.tensor(1.5) / x - torch.tensor(0.5)",
    "return torch.min(x, torch.tensor(0.25)), torch.maximum(torch.tensor(-0.5), x).max(), x[0, 0] * torch.tensor(2.0)",
    "return torch.where(x > 0, x, torch.tensor(-1.0)), torch.add(torch.tensor(1.0), x, alpha=3)",
    "return x.int() * torch.tensor(2.5)",
    "y = self.fc(x)\nz = y.detach()\nz.zero_()\nreturn y",
]


@pytest.mark.parametrize("forward", FORWARDS)
def test_printed_forwards_compute_the_same(forward: str) -> None:
    check(make_task(forward, "torch.randn(4, 6)", INIT), "straight_line")


def test_other_arguments() -> None:
    check(
        make_task("return xs[0] @ d['w'] + k", "[torch.randn(3, 4)], {'w': torch.randn(4, 2)}, 2", args="xs, d, k"),
        "straight_line",
    )


@pytest.mark.parametrize("dtype", ["torch.float64", "torch.bfloat16", "torch.float16"])
def test_other_dtypes(dtype: str) -> None:
    task = make_task(
        "return self.fc(x).relu()", f"torch.randn(4, 6, dtype={dtype})", f"self.fc = nn.Linear(6, 4, dtype={dtype})"
    )
    check(task, "straight_line")


def test_a_capture_allocates_nothing() -> None:
    init = "self.a = nn.Linear(100_000, 100_000)\nself.b = nn.Parameter(torch.randn(50_000, 50_000))"
    task = make_task("return self.a(x).sum(-1) + (self.b @ self.b).mean()", "torch.randn(60_000, 100_000)", init)
    draft = open_draft(task, "cuda")
    assert draft.graph_module is not None, draft.failure
    assert applies("reduce_linear", task, "cuda")


def test_constructor_arguments_by_keyword() -> None:
    """`get_init_inputs` may return a dict; the candidate takes the same arguments."""
    source = make_task("return self.fc(x)", "torch.randn(4, 6)", "self.fc = nn.Linear(6, width, bias=bias)").source
    source = source.replace("def __init__(self):", "def __init__(self, width, bias):")
    source = source.replace("    return []\n", "    return {'bias': False, 'width': 4}\n")
    task = Task(suite="file", name="by keyword", source=source)
    scope = namespace(candidate(task, "straight_line").source)
    model, other = (scope[name](**scope["get_init_inputs"]()) for name in ("Model", "ModelNew"))
    other.load_state_dict(model.state_dict())
    (x,) = scope["get_inputs"]()
    assert model.fc.bias is None and torch.equal(model(x), other(x))


def test_a_constructor_that_needs_numbers_is_run_on_real_tensors() -> None:
    init = "self.scales = [v.item() for v in torch.linspace(0, 1, 3)]\nself.fc = nn.Linear(6, 6)"
    check(
        make_task("for s in self.scales:\n    x = self.fc(x) * s\nreturn x", "torch.randn(4, 6)", init), "straight_line"
    )


def test_real_tensors_are_limited() -> None:
    init = "self.scale = torch.ones(1).item()\nself.w = nn.Parameter(torch.empty(1 << 20, 1 << 20))"
    draft = open_draft(make_task("return x * self.scale", "torch.randn(3)", init), "cpu")
    assert draft.graph_module is None and "takes more than 1024 MiB" in draft.failure


def test_a_file_changes_nothing_outside(capsys: pytest.CaptureFixture[str]) -> None:
    state = torch.random.get_rng_state()
    source = make_task("return x + 1", "torch.randn(3)").source
    source += "\ntorch.set_default_dtype(torch.float64)\ntorch.manual_seed(7)\nprint('hello')\n"
    assert open_draft(Task(suite="file", name="loud", source=source), "cpu").graph_module is not None
    assert torch.get_default_dtype() is torch.float32
    assert torch.equal(torch.random.get_rng_state(), state)
    assert capsys.readouterr().out == ""


def test_drafts_of_one_task_do_not_share_changes() -> None:
    task = make_task("return x * 1 + 0", "torch.randn(3)")
    before = render(open_draft(task, "cpu"))
    candidate(task, "identities")
    assert render(open_draft(task, "cpu")) == before


def test_the_reference_text_comes_first_and_the_constructor_is_its_own() -> None:
    task = make_task("return self.fc(x)", "torch.randn(4, 6)", "self.fc = nn.Linear(6, 4)")
    source = render(open_draft(task, "cpu"))
    assert source.startswith(task.source.rstrip())
    assert "class ModelNew(Model):\n    def forward(self, x):" in source


def test_prelude_and_constructor_lines_are_printed_once() -> None:
    draft = open_draft(make_task("return x + 1", "torch.randn(3)"), "cpu")
    for _ in range(2):
        draft.use("def helper(x):\n    return x")
        draft.set_up("self.extra = helper(3)")
    draft.wrap.append("helper")
    source = render(draft)
    assert source.count("def helper") == source.count("self.extra = helper(3)") == 1
    scope: dict[str, object] = {}
    exec(source, scope)
    assert scope["ModelNew"]().extra == 3  # type: ignore[operator]


@pytest.mark.parametrize(
    ("forward", "why"),
    [
        ("return x if x.sum() > 0 else -x", "cannot be traced"),
        ("self.seen = x\nreturn x", "assigns the tensor self.seen"),
        ("return x.numpy()", ""),
        ("raise ValueError('not today')", "not today"),
        ("with torch.autocast('cpu', torch.bfloat16):\n    y = x @ x\nreturn y.float()", "runs under autocast"),
    ],
)
def test_what_cannot_be_captured_says_why_in_one_line(forward: str, why: str) -> None:
    draft = open_draft(make_task(forward, "torch.randn(3)"), "cpu")
    assert draft.graph_module is None
    assert why in draft.failure and "\n" not in draft.failure and draft.failure


def test_what_cannot_be_captured_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    own = drafts.capture_graph
    monkeypatch.setattr(drafts, "capture_graph", lambda source: (tried.append(source), own(source))[1])
    task = make_task("return x if x.sum() > 0 else -x  # in no other test", "torch.randn(4, 6)")
    assert open_draft(task, "cpu").failure == open_draft(task, "cpu").failure != ""
    assert tried == [task.source]


def test_without_a_graph_the_model_keeps_its_forward() -> None:
    task = make_task("return x + 1 if x.sum() < 1e9 else x", "torch.randn(3)")
    source = render(Draft(task, "cpu", None))
    twins = Twins(task, source)
    twins.check(1)


class Mixed(torch.nn.Module):
    """Computes in bfloat16 what the graph calls float32."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.autocast("cpu", torch.bfloat16):
            y = self.layer(x)
            z = self.layer(y.relu() * 2 + 1).tanh() + y
        return z.float() * 3, z


def test_types_under_autocast_stay_the_modules_own(tmp_path: Path) -> None:
    task = task_from_module(Mixed(), torch.randn(4, 8), work_dir=tmp_path)
    assert compose(task, ["identities", "straight_line", "in_place", "fusion", "preallocation"], "cpu") is None
    assert "runs under autocast" in open_draft(task, "cpu").failure


def test_autocast_that_is_off_hides_no_types() -> None:
    body = "with torch.autocast('cpu', enabled=False):\n    y = x @ x\nreturn y.to(x.dtype) + 1"
    check(make_task(body, "torch.randn(4, 4)"), "identities")


def test_literal_numbers_are_written_as_numbers() -> None:
    task = make_task("return torch.min(x, torch.tensor(0.25)) * torch.sqrt(torch.tensor(4.0))", "torch.randn(3)")
    body = render(open_draft(task, "cpu")).split("def forward(self, x)")[-1]
    assert "clamp_max(x, 0.25)" in body and "2.0)" in body and "lifted" not in body


def test_random_draws_stay_apart() -> None:
    source = candidate(
        make_task("return F.dropout(x, 0.5, True), torch.rand(3)", "torch.randn(8)"), "straight_line"
    ).source
    assert "dropout(" in source and "rand(" in source


def test_training_statistics_are_updated_as_the_reference_does() -> None:
    task = make_task("return self.bn(x)", "torch.randn(5, 4)", INIT)
    twins = Twins(task, candidate(task, "straight_line").source)
    for seed in range(3):
        twins.check(seed)
    assert twins.model_new.bn.num_batches_tracked == 3 and not torch.equal(
        twins.model_new.bn.running_mean, torch.zeros(4)
    )


def test_registry_and_drafts_load_no_torch() -> None:
    code = "import sys, cuda_l1.proposers.techniques.proposer as p, cuda_l1.proposers.techniques as t\n"
    code += "[t.load(name) for name in t.REGISTRY]\nassert 'torch' not in sys.modules, 'torch was imported'"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_task_of_several_files_worth_of_classes() -> None:
    source = """
from dataclasses import dataclass
import torch
from torch import nn

@dataclass
class Config:
    width: int = 6

class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.fc = nn.Linear(config.width, config.width)
    def forward(self, x):
        return x + torch.nn.functional.gelu(self.fc(x))

class Model(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.blocks = nn.Sequential(*[Block(Config()) for _ in range(depth)])
    def forward(self, x):
        return self.blocks(x)

def get_inputs(): return [torch.randn(2, 6)]
def get_init_inputs(): return [3]
"""
    check(Task(suite="file", name="blocks", source=source), "in_place")


@pytest.mark.parametrize("technique", ["straight_line", "kept_constants"])
@pytest.mark.parametrize("place", ["module", "forward"])
def test_constants_of_a_submodule_and_of_the_file(place: str, technique: str) -> None:
    made = "torch.tensor([0.5, 2.0, 1.0])"
    source = f"""
import torch
from torch import nn

SCALE = {made}

class Inner(nn.Module):
    def forward(self, x):
        return x * {"SCALE" if place == "module" else made}.exp()

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Inner(), Inner()])
    def forward(self, x):
        return self.blocks[1](self.blocks[0](x))

def get_inputs(): return [torch.randn(2, 3)]
def get_init_inputs(): return []
"""
    check(Task(suite="file", name="constants", source=source), technique)


class Chosen(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[torch.tensor([0, 2])] * torch.tensor([0.5, 2.0]).exp()[:, None]


@pytest.mark.parametrize("technique", ["straight_line", "kept_constants"])
def test_a_constant_that_a_live_modules_text_already_holds(technique: str, tmp_path: Path) -> None:
    task = task_from_module(Chosen(), torch.randn(4, 6), work_dir=tmp_path)
    assert "lifted_tensor_0" in task.source
    check(task, technique)


def forward_of(task: Task) -> str:
    built = candidate(task, "straight_line")
    return built.source.rpartition("class ModelNew")[2]


DROPOUT = "self.drop = nn.Dropout(0.5); self.layer = nn.Linear(8, 8)"


def test_dropout_follows_the_mode_of_the_module() -> None:
    """A task that draws random numbers in train mode is judged by value in eval mode, where its dropout rests."""
    task = make_task("return self.drop(self.layer(x)).relu()", "torch.randn(4, 8)", DROPOUT)
    assert "0.5, self.training)" in forward_of(task)
    twins = Twins(task, candidate(task, "straight_line").source)
    for mode in (True, False):
        twins.model.train(mode)
        twins.model_new.train(mode)
        torch.manual_seed(1)
        got = twins.model_new(torch.ones(4, 8))
        torch.manual_seed(1)
        assert torch.equal(got, twins.model(torch.ones(4, 8)))


@pytest.mark.parametrize(
    ("forward", "init"),
    [
        ("return F.dropout(self.layer(x), 0.5)", DROPOUT),
        ("return self.drop(self.layer(x))", f"{DROPOUT}; self.eval(); self.drop.train()"),
        ("y = self.drop(self.layer(x)); return y + 1 if self.training else y", DROPOUT),
        ("return self.drop(x) if self.training else self.layer(x)", DROPOUT),
    ],
    ids=["always", "while the rest is in eval mode", "with more that differs", "in place of something else"],
)
def test_dropout_that_does_more_than_follow_the_mode_stays(forward: str, init: str) -> None:
    text = forward_of(make_task(forward, "torch.randn(4, 8)", init))
    assert "0.5, True)" in text and "self.training" not in text
