"""One hash for one computation in other words, another for another computation."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from cuda_l1.tasks import load_tasks
from cuda_l1.tasks.graph_hash import graph_hash

FRAME = """
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE = {size}

class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
{init}

    def forward(self, x, y):
{forward}

def get_inputs():
    return [torch.randn(4, SIZE), torch.randn(4, SIZE)]

def get_init_inputs():
    return [SIZE]
"""


def text(forward: str, init: str = "pass", size: int = 8) -> str:
    def indented(body: str) -> str:
        return "\n".join(" " * 8 + line for line in body.splitlines())

    return FRAME.format(forward=indented(forward), init=indented(init), size=size)


def hashed(forward: str, init: str = "pass", size: int = 8) -> str:
    found = graph_hash(text(forward, init, size))
    assert not found.startswith("syntax-"), "the text is meant to be followed"
    return found


SAME = {
    "spelling": [
        ("return F.relu(x)", "pass"),
        ("return torch.relu(x)", "pass"),
        ("return x.relu()", "pass"),
        ("x.relu_()\nreturn x", "pass"),
        ("return self.f(x)", "self.f = nn.ReLU(inplace=True)"),
        ("return self.f(x)", "self.f = nn.Sequential(nn.Identity(), nn.ReLU())"),
        ("return torch.nn.functional.relu(input=x, inplace=True)", "pass"),
    ],
    "settings": [
        ("return F.softmax(x, dim=1)", "pass"),
        ("return torch.softmax(x, 1)", "pass"),
        ("return x.softmax(dim=1)", "pass"),
        ("return self.s(x)", "self.s = nn.Softmax(dim=1)"),
    ],
    "default": [
        ("return F.leaky_relu(x)", "pass"),
        ("return F.leaky_relu(x, negative_slope=1e-2)", "pass"),
        ("return self.f(x)", "self.f = nn.LeakyReLU(0.01)"),
    ],
    "pooling": [
        ("return F.max_pool2d(x, 2)", "pass"),
        ("return self.p(x)", "self.p = nn.MaxPool2d(kernel_size=(2, 2), stride=2)"),
    ],
    "reduction": [("return x.sum(1, keepdim=True)", "pass"), ("return torch.sum(x, axis=1, keepdims=True)", "pass")],
    "order": [
        ("a = x.exp()\nb = y.tanh()\nreturn a + b", "pass"),
        ("first = torch.tanh(y)\nunused = x.sum()\nsecond = torch.exp(x)\nreturn torch.add(first, second)", "pass"),
    ],
    "helper": [
        ("return (x @ y.T).sigmoid()", "pass"),
        ("def inner(a):\n    return torch.matmul(a, y.transpose(-1, -2))\nreturn F.sigmoid(inner(x))", "pass"),
    ],
    "loop": [
        ("x = torch.tanh(x)\nx = torch.tanh(x)\nreturn torch.tanh(x)", "pass"),
        ("for _ in range(3):\n    x = torch.tanh(x)\nreturn x", "pass"),
        (
            "for layer in self.layers:\n    x = layer(x)\nreturn x",
            "self.layers = nn.ModuleList(nn.Tanh() for _ in 'abc')",
        ),
    ],
    "accumulation": [("return x * 2 + y", "pass"), ("x = x.mul(2.0)\nx += y\nreturn x", "pass")],
    "layers": [
        ("return self.b(self.a(x).relu())", "self.a = nn.Linear(dim, dim)\nself.b = nn.Linear(dim, dim)"),
        ("return self.net(x)", "self.net = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))"),
    ],
    "flattened": [
        ("return x.view(x.size(0), -1)", "pass"),
        ("return torch.flatten(x, 1)", "pass"),
        ("return self.f(x)", "self.f = nn.Flatten()"),
        ("return x.reshape(x.shape[0], -1)", "pass"),
    ],
}


@pytest.mark.parametrize("case", SAME)
def test_one_computation_in_other_words(case: str) -> None:
    assert len({hashed(*words) for words in SAME[case]}) == 1


DIFFERENT = {
    "order of operands": ("return x - y * x", "return y * x - y"),
    "operator": ("return x.relu()", "return x.tanh()"),
    "dimension": ("return x.sum(0)", "return x.sum(1)"),
    "kept dimension": ("return x.sum(1)", "return x.sum(1, keepdim=True)"),
    "scalar": ("return x * 2", "return x * 3"),
    "number of passes": ("for _ in range(2):\n    x = x.tanh()\nreturn x", "return x.tanh()"),
    "which input": ("return x.exp() + x", "return x.exp() + y"),
    "number of outputs": ("return x.exp()", "return x.exp(), x.exp()"),
    "approximation": ("return F.gelu(x)", "return F.gelu(x, approximate='tanh')"),
    "mask": (
        "return F.scaled_dot_product_attention(x, y, y)",
        "return F.scaled_dot_product_attention(x, y, y, is_causal=True)",
    ),
    "index": ("return x[:, 1:]", "return x[:, :-1]"),
    "dtype": ("return x.to(torch.float16)", "return x.to(torch.float64)"),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_different_computations(case: str) -> None:
    one, other = DIFFERENT[case]
    assert hashed(one) != hashed(other)


def test_shared_weights_are_not_two_weights() -> None:
    two = "self.a = nn.Linear(dim, dim)\nself.b = nn.Linear(dim, dim)"
    assert hashed("return self.a(self.a(x))", two) != hashed("return self.a(self.b(x))", two)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("nn.Conv2d(3, dim, 3)", "nn.Conv2d(3, dim, 5)"),
        ("nn.Conv2d(3, dim, 3)", "nn.Conv2d(3, dim, 3, stride=2)"),
        ("nn.Conv2d(dim, dim, 3)", "nn.Conv2d(dim, dim, 3, groups=dim)"),
        ("nn.Linear(dim, dim)", "nn.Linear(dim, dim, bias=False)"),
        ("nn.BatchNorm2d(dim)", "nn.InstanceNorm2d(dim)"),
        ("nn.LayerNorm(dim)", "nn.LayerNorm(dim, eps=1e-3)"),
    ],
)
def test_layers_differ_by_what_is_no_size(one: str, other: str) -> None:
    assert hashed("return self.f(x)", f"self.f = {one}") != hashed("return self.f(x)", f"self.f = {other}")


@pytest.mark.parametrize(
    ("forward", "init"),
    [
        ("return self.f(x) / math.sqrt(x.size(-1))", "self.f = nn.Conv2d(dim, dim, 3, groups=dim)"),
        ("return self.f(x) * self.scale", "self.f = nn.Linear(dim, 4 * dim)\nself.scale = dim ** -0.5"),
        ("return x.view(x.shape[0], 2, self.half).sum(1)", "self.half = dim // 2"),
    ],
)
def test_sizes_do_not_count(forward: str, init: str) -> None:
    assert hashed(forward, init, size=8) == hashed(forward, init, size=64)


def test_a_loop_over_time_is_one_loop() -> None:
    rolled = "h = y\nout = []\nfor t in range(x.size(1)):\n    h = torch.tanh(x[:, t] + h)\n    out.append(h)\n"
    one = hashed(rolled + "return torch.stack(out)")
    assert one == hashed(rolled.replace("out", "kept") + "return torch.stack(kept)")
    assert one != hashed(rolled.replace("tanh", "sigmoid") + "return torch.stack(out)")
    assert one != hashed(rolled + "return h")


def test_what_cannot_be_followed_is_hashed_by_its_syntax() -> None:
    branch = "if x.sum() > 0:\n    return {name}.exp()\nreturn {name}.tanh()"
    found = graph_hash(text(branch.format(name="x")))
    assert found.startswith("syntax-")
    renamed = text(branch.format(name="x")).replace("(self, x, y)", "(self, p, q)").replace("x.", "p.")
    assert graph_hash(renamed) == found
    assert graph_hash(text(branch.format(name="y"))) != found


@pytest.mark.parametrize("broken", ["", "def", "x = 1", "class Model:\n    pass", "\0", "(" * 5000])
def test_any_text_has_a_hash(broken: str) -> None:
    assert graph_hash(broken).startswith("syntax-")


def test_nothing_of_the_text_is_executed(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    evil = f"import os\nos.system('touch {mark}')\n" + text("open('{mark}', 'w')\n__import__('os')\nreturn x")
    graph_hash(evil)
    assert not mark.exists()


BOMBS = {
    "number": "y = 10 ** 10 ** 10",
    "shift": "y = 1 << 10 ** 9",
    "squares": "y = 3\nfor _ in range(4000):\n    y = y * y",
    "list": "y = [0] * 10 ** 12",
    "text": "y = 'a'\nfor _ in range(4000):\n    y = y + y",
    "format": "y = '%1000000000d' % 1",
    "width": "y = 'a'.ljust(10 ** 12)",
    "factorial": "y = math.factorial(10 ** 9)",
    "nested": "y = x\nfor _ in range(100):\n    y = (y, y)\nreturn torch.stack(y)",
    "own element": "y = []\ny.append(y)\nreturn torch.stack(y)",
    "printed": "y = [1]\nfor _ in range(100):\n    y = [y, y]\nz = f'{y}'",
    "loops": "y = [a + b + c for a in range(4000) for b in range(4000) for c in range(4000)]",
    "calls": "def f(n):\n    return f(n - 1) + f(n - 1)\ny = f(500)",
    "depth": "return " + "-" * 3000 + "x",
    "sum": "return x" + " + 1" * 20000,
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.timeout(20)
def test_a_text_cannot_fill_the_memory_or_take_for_ever(bomb: str) -> None:
    found = graph_hash(text(BOMBS[bomb] + ("" if "return" in BOMBS[bomb] else "\nreturn x")))
    assert len(found.removeprefix("syntax-")) == 64


def test_a_long_chain_is_followed() -> None:
    assert hashed("for _ in range(4000):\n    x = x.sin() + x\nreturn x")


def test_built_in_tasks_are_followed_and_all_different() -> None:
    hashes = {task.name: graph_hash(task) for task in load_tasks("builtin")}
    assert not [found for found in hashes.values() if found.startswith("syntax-")]
    assert len(set(hashes.values())) == len(hashes)
    larger = {task.name: graph_hash(task) for task in load_tasks("builtin", device="cuda")}
    in_formulas = {"alibi_attention", "rotary_embedding"}  # these divide a tensor by a size
    assert {name for name in hashes if hashes[name] != larger[name]} == in_formulas


@pytest.mark.skipif("CUDA_L1_KERNELBENCH" not in os.environ, reason="CUDA_L1_KERNELBENCH names no checkout")
def test_kernelbench_is_followed() -> None:
    tasks = [t for t in load_tasks(f"kernelbench:{os.environ['CUDA_L1_KERNELBENCH']}") if (t.level or 0) < 4]
    kinds = Counter(graph_hash(task).startswith("syntax-") for task in tasks)
    assert kinds[True] <= 3
