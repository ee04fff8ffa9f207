"""straight_line: Python around the operations goes, values stay; forwards that are no one graph are refused."""

from __future__ import annotations

import pytest
from graphs import applies, check, make_task

from cuda_l1.proposers.techniques import compose
from cuda_l1.proposers.techniques.draft import open_draft
from cuda_l1.types import Task

INIT = """self.layers = nn.ModuleList([nn.Linear(6, 6) for _ in range(3)])
self.net = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Sequential(nn.Linear(6, 6), nn.Identity()))
self.named = nn.ModuleDict({'a': nn.Linear(6, 6), 'b': nn.Tanh()})
self.scales = nn.ParameterList([nn.Parameter(torch.randn(6)) for _ in range(2)])
self.flag, self.name, self.steps = True, 'relu', 2
self.act = {'relu': F.relu, 'silu': F.silu}[self.name]
self.register_buffer('mean', torch.zeros(6))"""
PYTHON = [
    "for layer in self.layers:\n    x = layer(x)\nreturn x",
    "return self.net(x)",
    "return self.named['b'](self.named['a'](x))",
    "return x * sum(self.scales)",
    "return self.act(x)",
    "if self.flag:\n    x = x + 1\nelse:\n    x = x - 1\nreturn x",
    "if x.shape[0] > 2 and x.dim() == 2:\n    x = x.t()\nreturn x",
    "i = 0\nwhile i < self.steps:\n    x, i = x.sin(), i + 1\nreturn x",
    "return torch.cat([layer(x) for layer in self.layers], dim=-1)",
    "return {f'{i}': layer(x) for i, layer in enumerate(self.layers)}",
    "a, *rest = x.chunk(3, -1)\nreturn a + sum(rest)",
    "f = lambda v, k=2: v.pow(k)\nreturn f(f(x), k=3)",
    "def inner(v, n):\n    return v if n == 0 else inner(v.cos(), n - 1)\nreturn inner(x, 3)",
    "assert x.shape[-1] == 6, 'six columns'\nreturn x.exp()",
    "try:\n    return x.view(5, 5)\nexcept (RuntimeError, ValueError):\n    return x.view(2, 12)",
    "with torch.no_grad():\n    y = x.square()\nreturn y",
    "match self.name:\n    case 'relu':\n        return x.relu()\n    case _:\n        return x",
    "unused = x @ x.t()\nreturn x.tanh()",
    "return getattr(torch, 'sigmoid')(x), isinstance(x, torch.Tensor), len(x)",
    "out = []\nfor row in x.unbind(0):\n    out.append(row.softmax(-1))\nreturn torch.stack(out)",
    "import functools\nreturn functools.reduce(torch.add, [x * s for s in self.scales])",
    "return F.multi_head_attention_forward if not self.flag else x.clamp(min=0)",
    "return torch.utils.checkpoint.checkpoint(self.net, x, use_reentrant=False) if not self.flag else self.net(x)",
    "return nn.functional.linear(x, self.layers[0].weight.detach(), None)",
]


@pytest.mark.parametrize("forward", PYTHON)
def test_python_around_the_operations(forward: str) -> None:
    assert applies("straight_line", make_task(forward, "torch.randn(4, 6)", INIT))


@pytest.mark.parametrize("index", [0, 9, 12, 14, 17])
def test_values(index: int) -> None:
    built = check(make_task(PYTHON[index], "torch.randn(4, 6)", INIT), "straight_line")
    body = built.source.split("class ModelNew")[1]
    assert not any(word in body for word in ("for ", "if ", "def inner", "try:", "@", "self.net(", "matmul"))


REFUSED = [
    "return x if x.sum() > 0 else -x",
    "while x.norm() > 1:\n    x = x / 2\nreturn x",
    "if torch.equal(x, x):\n    return x\nreturn -x",
    "for _ in range(int(x[0, 0].abs())):\n    x = x + 1\nreturn x",
    "return x * max(x[0, 0].item(), 0.0) if x[0, 0].item() > 0 else x",
    "return x.numpy()",
    "return torch.from_numpy(x.numpy() * 2)",
    "self.seen = x\nreturn x",
    "raise ValueError('not today')",
    "raise SystemExit(3)",
    "return x.no_such_method()",
    "return self.no_such_layer(x)",
    "return x @ x",
    "return x.view(5, 5)",
    "return {1, 2, 3}",
    "return nn.Linear",
    "return x * torch.tensor(list(range(6000)), dtype=x.dtype)[:6]",
    "return open('/nowhere/at/all').read()",
    "import module_that_is_nowhere\nreturn x",
]


def refused(task: Task) -> None:
    """No draft with a graph, one line why, and no candidate."""
    draft = open_draft(task, "cpu")
    assert draft.graph_module is None
    assert draft.failure and "\n" not in draft.failure
    assert compose(task, ["straight_line"], "cpu") is None


@pytest.mark.parametrize("forward", REFUSED)
def test_forwards_that_are_no_one_graph(forward: str) -> None:
    refused(make_task(forward, "torch.randn(4, 6)", INIT))


@pytest.mark.parametrize(
    ("inputs", "init", "args"),
    [
        ("torch.randn(4, 6)", "raise ValueError('no')", "x"),
        ("torch.randn(4, 6)", "self.fc = nn.Linear(6, 6, width=3)", "x"),
        ("torch.randn(4, 6), torch.randn(4, 6)", "pass", "x"),
        ("", "pass", "x"),
        ("torch.randn(4, 6).no_such_method()", "pass", "x"),
        ("torch.randn(4, 6)", "pass", "x, y"),
    ],
)
def test_constructors_and_inputs_that_fail(inputs: str, init: str, args: str) -> None:
    refused(make_task("return x + 1", inputs, init, args=args))
