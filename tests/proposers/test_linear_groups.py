"""hoist_linear, packed_linear, merged_linear: maps that share an input or a weight are made once; others stay."""

from __future__ import annotations

import pytest
from graphs import applies, check, make_task

LOOPS = [
    "ys = [self.fc(x[:, t]) for t in range(5)]",
    "ys = [self.fc(xt) for xt in x.unbind(1)]",
    "ys = [F.linear(x.select(1, t), self.fc.weight) for t in range(5)]",
    "ys = [self.fc(x[:, t]) for t in range(4)]",
    "ys = [self.fc(x[i]) for i in range(3)]",
]
ENDS = [
    "return torch.stack(ys, 1)",
    "h = torch.zeros_like(ys[0])\nfor y in ys:\n    h = torch.tanh(y + h * 0.5)\nreturn h",
    "return sum(y * (i + 1) for i, y in enumerate(ys))",
    "return torch.cat([y.relu().reshape(-1) for y in ys])",
]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("end", ENDS)
def test_loops_are_hoisted(loop: str, end: str) -> None:
    built = check(make_task(f"{loop}\n{end}", "torch.randn(3, 5, 6)", "self.fc = nn.Linear(6, 4)"), "hoist_linear")
    assert built.source.split("class ModelNew")[1].count("linear(") == 1


LOOSE = [
    "return self.fc(x[:, 0])",
    "return self.fc(x[:, 0]) + self.fc(x[:, 1])",
    "return sum(self.fc(x[:, 0]) for _ in range(5))",
    "return sum(self.maps[t](x[:, t]) for t in range(5))",
    "return sum(self.fc(x[:, t] * t) for t in range(5))",
    "return sum(self.fc(x[:, t : t + 1]) for t in range(5))",
    "return self.fc(x).sum(1)",
    "return sum(F.linear(x[:, t], self.fc.weight.t().contiguous().t() * 2) for t in range(5))",
    "return sum(F.linear(x[:, t], self.fc.weight * t) for t in range(5))",
    "return sum(F.linear(x[:, t].t(), self.w).sum() for t in range(5))",
    "return sum(self.sq(x[:, :, t][:, :5]).sum() for t in range(6))",
    "h = x[:, 0]\nfor t in range(5):\n    h = self.ih(h) + x[:, t]\nreturn h",
    "return sum(x[:, t] @ self.fc.weight.t() for t in range(5))",
    "y = x.clone()\nout = 0\nfor t in range(5):\n    out = out + self.fc(y[:, t])\n    y[:, 2] = 1\nreturn out",
    "return self.fc(x[:, 0]) + F.linear(x[:, 1], self.fc.weight)",
    "return sum(F.linear(x[:, t], self.fc.weight, self.b[t]) for t in range(5))",
    "return torch.stack([self.fc(torch.relu(xt)) for xt in x.unbind(1)])",
    "return torch.stack([self.fc(xt).relu() for xt in x.chunk(5, 1)])",
    "return self.fc(x[0]) + self.fc(x[0])",
    "return torch.stack([self.fc(x[:, t] + x[:, t - 1]) for t in range(5)])",
]
LOOSE_INIT = """self.fc = nn.Linear(6, 4)
self.maps = nn.ModuleList(nn.Linear(6, 4) for _ in range(5))
self.w = nn.Parameter(torch.randn(4, 3))
self.sq = nn.Linear(5, 4)
self.ih = nn.Linear(6, 6)
self.b = nn.Parameter(torch.randn(5, 4))"""


@pytest.mark.parametrize("forward", LOOSE)
def test_loops_that_stay(forward: str) -> None:
    assert not applies("hoist_linear", make_task(forward, "torch.randn(3, 5, 6)", LOOSE_INIT))


PACK = (
    "self.q = nn.Linear(6, 4)\nself.k = nn.Linear(6, 8)\nself.v = nn.Linear(6, 4, bias=False)\nself.g = nn.Linear(6, 4)"
)
PACKABLE = [
    "return self.q(x) * self.v(x)",
    "return F.silu(self.q(x)) * self.g(x)",
    "return (self.q(x) + self.g(x)) @ self.v(x).mT",
    "q, k, v = self.q(x), self.k(x), self.v(x)\nreturn torch.cat([q, k, v], -1).relu()",
    "h = self.q(x).view(2, 5, 2, 2).transpose(1, 2)\ng = self.g(x).view(2, 5, 2, 2).transpose(1, 2)\nreturn h @ g.mT",
    "return self.q(x).view(10, 4) * self.g(x).view(-1, 4)",
    "return self.q(x).flatten() * self.g(x).flatten()",
    "y = x.relu()\nreturn self.q(y) - self.g(y)",
    "return torch.sigmoid(self.q(x)) + torch.tanh(self.g(x)) + self.v(x).exp() * 0.1",
    "return self.k(x)[..., :4] * self.q(x)",
    "return self.q(x[0]) * self.g(x[0]) if False else self.q(x).mul(self.g(x)).sum(-1)",
    "return self.v(x) / (1 + self.g(x).abs())",
    "a = self.q(x)\nb = self.g(x)\nreturn torch.maximum(a, b), torch.minimum(a, b)",
    "return self.q(x).softmax(-1) * self.k(x)[..., 4:]",
    "return (self.q(x).unsqueeze(-1) * self.g(x).unsqueeze(-2)).sum((-1, -2))",
    "return F.layer_norm(self.q(x), (4,)) + F.layer_norm(self.v(x), (4,))",
    "return self.q(x).transpose(0, 1).reshape(5, 8) * self.g(x).transpose(0, 1).reshape(5, 8)",
    "return self.q(x).amax(1) + self.g(x).amin(1)",
    "return self.q(x.view(10, 6)) if False else self.g(x) + self.v(x) * 2",
    "r = self.q(x)\nreturn self.g(x) * r + r",
]


@pytest.mark.parametrize("forward", PACKABLE)
def test_packed(forward: str) -> None:
    built = check(make_task(forward, "torch.randn(2, 5, 6)", PACK), "packed_linear")
    assert "cat(" in built.source and "DerivedTensors" in built.source


UNPACKABLE = [
    "return self.q(x)",
    "return self.q(x), self.g(x)",
    "return self.q(x) * self.g(x * 2)",
    "return self.q(x) * self.g(x.clone())",
    "return self.q(x) + self.q(x)",
    "return self.q(x) * F.linear(x, self.g.weight * 2)",
    "return self.q(x) * (x @ self.g.weight.t())",
    "return self.q(self.sq(x)) * self.sq(x)[..., :4]",
    "return F.conv1d(x, self.c) + F.conv1d(x, self.c)",
    "a = self.q(x)\na[0] = 1\nb = self.q(x[:1])\nreturn a + b",
    "return self.q(x)[0] * self.g(x[0])",
    "return self.q(x[:, :3]) * self.g(x[:, 2:])",
    "return self.q(x).view(10, 4), self.g(x)",
    "return self.q(x), self.k(x)[..., 0]",
    "return self.q(x) + F.linear(x, self.q.weight)",
    "y = x.clone()\na = self.q(y)\ny[0] = 0\nreturn a * self.g(y)",
    "return self.q(x) * self.q(x).relu()",
    "return F.linear(x, self.w1)[..., :2] * F.linear(x[..., :5], self.w2)",
    "return F.bilinear(x, x, self.bl)",
    "return self.q(x.relu()) * self.g(torch.relu(x))",
]
UNPACKABLE_INIT = (
    PACK
    + """
self.sq = nn.Linear(6, 6)
self.c = nn.Parameter(torch.randn(3, 5, 2))
self.w1 = nn.Parameter(torch.randn(4, 6))
self.w2 = nn.Parameter(torch.randn(2, 5))
self.bl = nn.Parameter(torch.randn(2, 6, 6))"""
)


@pytest.mark.parametrize("forward", UNPACKABLE)
def test_unpackable(forward: str) -> None:
    assert not applies("packed_linear", make_task(forward, "torch.randn(2, 5, 6)", UNPACKABLE_INIT))


@pytest.mark.parametrize("biases", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("sizes", [(6, 20, 4), (6, 9, 6), (3, 50, 2), (8, 8, 2), (2, 7, 9)])
def test_merged(biases: tuple[bool, bool], sizes: tuple[int, int, int]) -> None:
    given, hidden, results = sizes
    init = f"self.a = nn.Linear({given}, {hidden}, bias={biases[0]})\n"
    init += f"self.b = nn.Linear({hidden}, {results}, bias={biases[1]})"
    check(make_task("return self.b(self.a(x)).relu()", f"torch.randn(4, {given})", init), "merged_linear")


APART = [
    ("return self.b(self.a(x).relu())", 20),
    ("y = self.a(x)\nreturn self.b(y) + y.sum()", 20),
    ("y = self.a(x)\nreturn self.b(y), y", 20),
    ("return self.b(self.a(x) * 2)", 20),
    ("return self.b(F.dropout(self.a(x), 0.1, True))", 20),
    ("return self.b(self.a(x) + 1)", 20),
    ("return self.b(self.a(x).softmax(-1))", 20),
    ("return self.b(F.layer_norm(self.a(x), (20,)))", 20),
    ("return self.b(self.a(x))", 2),
    ("return self.b(self.a(x))", 1),
    ("return self.b(-self.a(x))", 20),
    ("y = self.a(x)\ny[0] = 1\nreturn self.b(y)", 20),
    ("return self.b(self.a(x).flip(-1))", 20),
    ("return F.linear(self.a(x), self.b.weight.exp())", 20),
    ("return F.linear(F.linear(x, self.a.weight * x.sum()), self.b.weight)", 20),
    ("return F.linear(F.linear(x, self.a.weight.abs()), self.b.weight)", 20),
    ("return self.b(torch.cat([self.a(x)[:, :10], self.a(x)[:, 10:]], 1))", 20),
    ("return self.a(x) @ self.b.weight.t()", 20),
    ("return self.b(self.a(x)[:2])", 20),
    ("return self.b(self.a(x).abs())", 20),
]


@pytest.mark.parametrize(("forward", "hidden"), APART)
def test_maps_that_stay_apart(forward: str, hidden: int) -> None:
    init = f"self.a = nn.Linear(6, {hidden})\nself.b = nn.Linear({hidden}, 5)"
    assert not applies("merged_linear", make_task(forward, "torch.randn(4, 6)", init))
