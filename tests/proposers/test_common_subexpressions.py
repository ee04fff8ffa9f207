"""common_subexpressions: repeated calls are made once; calls that differ, draw, write or are returned stay."""

from __future__ import annotations

import pytest
from graphs import applies, check, make_task

REPEATED = [
    "x.exp() + x.exp() * 2",
    "torch.softmax(x, -1) * x - torch.softmax(x, -1)",
    "self.fc(x) * torch.sigmoid(self.fc(x))",
    "(x * y).sin() + (y * x).cos()",
    "x.sum(0) * 2 + x.sum(0)",
    "x.mean(1, keepdim=True) + x.mean(1, keepdim=True) * y",
    "x[:, 0] * 2 - x[:, 0]",
    "x.t() @ y + (x.t() @ y).relu()",
    "torch.cat([x, y]).relu() + torch.cat([x, y])",
    "F.layer_norm(x, (6,)) * F.layer_norm(x, (6,)).exp()",
    "torch.maximum(x, y) - torch.maximum(y, x) * 2",
    "x.view(6, 4).exp().view(4, 6) + x.view(6, 4).exp().view(4, 6) * 2",
    "x.clamp(0, 1) + x.clamp(0, 1).sqrt()",
    "torch.stack([x, y]).sum(0) * torch.stack([x, y]).sum(0) + 1",
    "x.tril() @ x.tril().t()",
    "self.fc(x) + self.fc(x) * 3",
    "x.cumsum(1) / (1 + x.cumsum(1).abs())",
    "x.pow(2).sum(1) + x.pow(2).sum(0)[:4]",
    "x.abs().amax() + x.abs().amin()",
    "(x > 0).float() + (x > 0).float() * 2",
    "self.w.exp() * x + self.w.exp()",
]
INIT = "self.fc = nn.Linear(6, 6)\nself.w = nn.Parameter(torch.randn(6))"
INPUTS = "torch.randn(4, 6), torch.randn(4, 6)"


@pytest.mark.parametrize("text", REPEATED)
def test_repeated(text: str) -> None:
    check(make_task(f"return {text}", INPUTS, INIT, args="x, y"), "common_subexpressions")


DIFFERENT = [
    "return x.exp() + y.exp()",
    "return x.sum(0) + x.sum(0, keepdim=True)",
    "return x.sum(0)[:4] + x.sum(1)",
    "return x * 1 + x * 1.0",
    "return (x / y) + (y / x)",
    "return x.clamp(0, 1) + x.clamp(0, 2)",
    "return x - y + (y - x)",
    "return F.gelu(x) + F.gelu(x, approximate='tanh')",
    "return x[:, 0] + x[:, 1]",
    "return x.softmax(0) + x.softmax(1)",
    "return F.dropout(x, 0.5, True) + F.dropout(x, 0.5, True)",
    "return torch.rand_like(x) + torch.rand_like(x)",
    "return torch.bernoulli(x.sigmoid()) - torch.bernoulli(y.sigmoid())",
    "return x.exp(), x.exp()",
    "return x.clone(), x.clone()",
    "a = x.clone()\na += 1\nb = x.clone()\nb[0] = 3\nreturn a + b",
    "a = x * 2\na[0] = 1\nb = x * 2\nreturn a * b",
    "a = x.view(-1)\nb = a.sum()\nx.mul_(2)\nreturn b + x.view(-1).sum()",
    "return self.fc(x) + F.linear(x, self.fc.weight)",
    "return x.to(torch.float64).sum() + x.sum()",
    "return torch.cat([x, y]) + torch.cat([y, x])",
    "return x.std(0) + x.std(0, correction=0)",
]


@pytest.mark.parametrize("forward", DIFFERENT)
def test_near_misses(forward: str) -> None:
    assert not applies("common_subexpressions", make_task(forward, INPUTS, INIT, args="x, y"))
