"""fuse_activation: spelled-out activations become one call, expressions with another constant or sign stay."""

from __future__ import annotations

import pytest
from graphs import applies, check, make_task

ROOT = "math.sqrt(2 / math.pi)"
SPELLED = [
    "x * torch.sigmoid(x)",
    "torch.sigmoid(x) * x",
    "x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))",
    "0.5 * x * (1.0 + torch.erf(x / 2 ** 0.5))",
    "x * (0.5 * (torch.erf(x * math.sqrt(0.5)) + 1))",
    "(x * (1 + torch.erf(x / 1.4142135623730951))) * 0.5",
    "x / 2 * (1 + torch.erf(x * 0.7071067811865476))",
    f"0.5 * x * (1 + torch.tanh({ROOT} * (x + 0.044715 * torch.pow(x, 3.0))))",
    f"0.5 * x * (1 + torch.tanh({ROOT} * (x + 0.044715 * x * x * x)))",
    f"x * (torch.tanh((x + 0.044715 * x ** 3) * {ROOT}) + 1) * 0.5",
    f"0.5 * x * (1 + torch.tanh({ROOT} * x * (1 + 0.044715 * x * x)))",
    "x * torch.tanh(F.softplus(x))",
    "torch.tanh(torch.log1p(torch.exp(x))) * x",
    "torch.log1p(x.exp())",
    "torch.log(torch.sigmoid(x))",
    "torch.log(torch.softmax(x, -1))",
    "torch.exp(F.log_softmax(x, 0))",
    "torch.softmax(x, 1).log()",
    "torch.exp(torch.log_softmax(x, -1))",
    "torch.sigmoid(x).mul(x)",
]


@pytest.mark.parametrize("text", SPELLED)
def test_spelled_out(text: str) -> None:
    built = check(make_task(f"return {text}", "torch.randn(4, 6)"), "fuse_activation", tolerance=32)
    body = built.source.split("class ModelNew")[1]
    assert body.count(" = ") == 1, body


NEAR = [
    "x * torch.sigmoid(-x)",
    "x * torch.sigmoid(y)",
    "x * torch.sigmoid(1.5 * x)",
    "x + torch.sigmoid(x)",
    "x * 0.5 * (1 + torch.erf(x))",
    "x * 0.5 * (1 - torch.erf(x / math.sqrt(2)))",
    "x * (1 + torch.erf(x / math.sqrt(2)))",
    "0.5 * y * (1 + torch.erf(x / math.sqrt(2)))",
    "0.5 * x * (1 + torch.erf(x / 1.42))",
    "x * torch.tanh(x)",
    f"0.5 * x * (1 + torch.tanh({ROOT} * (x + 0.0447 * x ** 3)))",
    f"0.5 * x * (1 + torch.tanh({ROOT} * (x + 0.044715 * x ** 2)))",
    f"0.5 * x * (2 + torch.tanh({ROOT} * (x + 0.044715 * x ** 3)))",
    "x * torch.tanh(F.softplus(x, beta=2))",
    "x * torch.tanh(F.softplus(x, threshold=1))",
    "torch.log(1 - torch.sigmoid(x))",
    "torch.log(torch.softmax(x, -1) + 1)",
    "torch.log(torch.softmax(x, -1, dtype=torch.float64))",
    "torch.log(torch.log_softmax(x, -1).abs())",
    "torch.log2(torch.softmax(x, -1))",
    "torch.exp(torch.softmax(x, -1))",
    "torch.expm1(torch.log_softmax(x, 1))",
    "torch.log1p(torch.expm1(x).abs())",
    "x[:1] * torch.sigmoid(x)",
]


@pytest.mark.parametrize("text", NEAR)
def test_near_misses(text: str) -> None:
    assert not applies(
        "fuse_activation", make_task(f"return {text}", "torch.randn(4, 6), torch.randn(4, 6)", args="x, y")
    )
