"""reduce_linear: reductions of linear maps are moved inside; reductions that only look movable stay."""

from __future__ import annotations

import pytest
from graphs import applies, check, make_task

VECTOR = "\nself.s = nn.Parameter(torch.randn(5))"
LINEAR = "self.fc = nn.Linear(6, 5)" + VECTOR
NO_BIAS = "self.fc = nn.Linear(6, 5, bias=False)" + VECTOR

OF_LINEAR = [
    "y.sum(-1)",
    "y.sum(1, keepdim=True)",
    "y.mean(-1)",
    "(y * 2).sum(-1)",
    "(y / 3).mean(-1, keepdim=True)",
    "y.sum(0)",
    "y.mean(0, keepdim=True)",
    "y.sum((0, 1))",
    "y.mean([1, 0], keepdim=True)",
    "torch.relu(y.sum(-1)) * 2",
    "((y * 2) / 3).sum(-1)",
    "(y + self.s).sum(-1)",
    "((y - self.s) * 2).mean(-1, keepdim=True)",
    "(self.s + y + 1).sum(-1) * 2",
    "(y - self.s).mean(-1) + torch.relu(x).sum(-1)",
    "((y * 3 + 0.5) - self.s).sum((0, 1))",
    "(y - 2).mean(1)",
    "y.sum()",
    "y.mean() * 2",
    "(y + self.s).sum()",
]


@pytest.mark.parametrize("init", [LINEAR, NO_BIAS])
@pytest.mark.parametrize("text", OF_LINEAR)
def test_linear(text: str, init: str) -> None:
    built = check(make_task(f"y = self.fc(x)\nreturn {text}", "torch.randn(4, 6)", init), "reduce_linear")
    assert "linear(x, self.fc.weight" not in built.source.split("class ModelNew")[1]


PRODUCTS = [
    "(x @ y).sum(-1)",
    "(x @ y).mean(-1, keepdim=True)",
    "(x @ y).sum(-2)",
    "torch.bmm(x, y).sum((1, 2))",
    "(x @ y[0]).sum(0)",
    "(x @ y[0]).mean((0, 2))",
    "torch.mm(x[0], y[0]).sum(0)",
]


@pytest.mark.parametrize("text", PRODUCTS)
def test_products(text: str) -> None:
    check(make_task(f"return {text}", "torch.randn(3, 4, 6), torch.randn(3, 6, 5)", args="x, y"), "reduce_linear")


CONVOLUTIONS = [
    ("nn.Conv2d(4, 6, 3, padding=1)", "4, 7, 7", "y.sum(1)"),
    ("nn.Conv2d(4, 6, 3, stride=2, bias=False)", "4, 7, 7", "y.mean(1, keepdim=True)"),
    ("nn.Conv2d(4, 6, 3, groups=2)", "4, 7, 7", "y.mean(1)"),
    ("nn.Conv2d(4, 6, 3, groups=2)", "4, 7, 7", "y.sum((1, 2, 3))"),
    ("nn.Conv1d(4, 6, 3, dilation=2)", "4, 9", "y.sum(1, keepdim=True)"),
    ("nn.Conv3d(2, 4, 2)", "2, 4, 4, 4", "y.sum(1)"),
    ("nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1)", "4, 5, 5", "y.sum(1)"),
    ("nn.ConvTranspose3d(2, 4, 2)", "2, 3, 3, 3", "y.mean(1, keepdim=True)"),
]


@pytest.mark.parametrize(("layer", "size", "text"), CONVOLUTIONS)
def test_convolutions(layer: str, size: str, text: str) -> None:
    check(
        make_task(f"y = self.conv(x)\nreturn {text}", f"torch.randn(2, {size})", f"self.conv = {layer}"),
        "reduce_linear",
    )


NEAR = [
    ("y = self.fc(x)\nreturn torch.relu(y).sum(-1)", LINEAR),
    ("y = self.fc(x)\nreturn y.amax(-1)", LINEAR),
    ("y = self.fc(x)\nreturn y.sum(-1), y", LINEAR),
    ("y = self.fc(x)\nreturn y.sum(-1) + y.mean()", LINEAR),
    ("y = self.fc(x)\nreturn y.square().sum(-1)", LINEAR),
    ("y = self.fc(x)\nreturn (y * y).sum(-1)", LINEAR),
    ("y = self.fc(x)\nreturn y.prod(-1)", LINEAR),
    ("y = self.fc(x)\nreturn (y + self.s).sum(0)", LINEAR),
    ("y = self.fc(x)\nreturn (y + x[:, :1]).sum(-1)", LINEAR),
    ("y = self.fc(x)\nreturn (y + y.amax(0)).sum(-1)", LINEAR),
    ("y = self.fc(x)\nreturn (self.s - y).sum(-1)", LINEAR),
    ("y = self.fc(x)\nreturn torch.add(y, self.s, alpha=2).sum(-1)", LINEAR),
    ("y = self.fc(x)\nreturn y.sum(-1, dtype=torch.float64)", LINEAR),
    ("y = self.fc(x)\ny[0, 0] = 7\nreturn y.sum(-1)", LINEAR),
    ("y = self.fc(x)\nreturn torch.logsumexp(y, -1)", LINEAR),
    ("y = self.fc(x)\nreturn y.std(-1)", LINEAR),
    ("y = self.fc(x)\nreturn (y + x.sum()).sum(-1)", LINEAR),
    ("y = F.dropout(self.fc(x), 0.5, False).abs()\nreturn y.sum(-1)", LINEAR),
    ("y = self.fc(x)\nreturn torch.norm(y, dim=-1)", LINEAR),
    ("y = self.fc(x)\nreturn torch.cumsum(y, -1)", LINEAR),
    ("y = self.fc(x[:1])\nreturn y.sum(0)", LINEAR),
    ("y = self.fc(x)\nreturn y.sum(-1)", "self.fc = nn.Linear(6, 1)"),
    ("return (x[None] @ x[None].mT).sum(0)", "pass"),
    ("return (x @ x[0]).sum(-1)", "pass"),
    ("return torch.bmm(x[None], x.t()[None]).sum(0)", "pass"),
    ("y = F.conv1d(x[None], self.w)\nreturn y.sum(2)", "self.w = nn.Parameter(torch.randn(3, 4, 2))"),
    ("y = F.conv1d(x[None], self.w)\nreturn y.sum(0)", "self.w = nn.Parameter(torch.randn(3, 4, 2))"),
    ("y = F.conv1d(x[None], self.w)\nreturn y.mean((0, 2))", "self.w = nn.Parameter(torch.randn(3, 4, 2))"),
    (
        "y = F.conv_transpose1d(x[None], self.w, groups=2)\nreturn y.sum(1)",
        "self.w = nn.Parameter(torch.randn(4, 3, 2))",
    ),
]


@pytest.mark.parametrize(("forward", "init"), NEAR)
def test_near_misses(forward: str, init: str) -> None:
    assert not applies("reduce_linear", make_task(forward, "torch.randn(4, 6)", init))
