"""fuse_norm and fuse_softmax: written-out forms become single calls; other axes, estimators and shifts stay."""

from __future__ import annotations

import itertools

import pytest
from graphs import applies, check, make_task

MOMENTS = [
    "m, v = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)",
    "m = x.mean(2, keepdim=True)\nv = ((x - m) ** 2).mean(2, keepdim=True)",
    "m, v = x.mean(dim=-1, keepdim=True), x.var(-1, keepdim=True, correction=0)",
    "m = x.mean(-1, keepdim=True)\nv = (x - m).square().mean(-1, keepdim=True)",
]
LAYER = ["(x - m) / torch.sqrt(v + 1e-5)", "(x - m) * torch.rsqrt(v + 1e-5)", "(x - m) / (v + 1e-5) ** 0.5"]
RMS = [
    "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)",
    "x / torch.sqrt((x * x).mean(2, keepdim=True) + 1e-6)",
    "x / torch.sqrt(1e-6 + x.square().mean(-1, keepdim=True))",
    "x * (x ** 2).mean(-1, keepdim=True).add(1e-6).rsqrt()",
]
INIT = "self.w = nn.Parameter(torch.rand(6) + 0.5)\nself.b = nn.Parameter(torch.randn(6))"


@pytest.mark.parametrize(("moments", "text"), list(itertools.product(MOMENTS, LAYER)))
def test_layer_norm(moments: str, text: str) -> None:
    built = check(
        make_task(f"{moments}\nreturn {text} * self.w + self.b", "torch.randn(3, 4, 6)", INIT),
        "fuse_norm",
        tolerance=32,
    )
    body = built.source.split("class ModelNew")[1]
    assert body.count("torch.layer_norm(") == 1 and body.count(" = ") == 1, body


@pytest.mark.parametrize("text", RMS)
@pytest.mark.parametrize("affine", ["{}", "self.w * ({})", "({}) * self.w", "({}) * self.w + self.b"])
def test_rms_norm(text: str, affine: str) -> None:
    built = check(make_task(f"return {affine.format(text)}", "torch.randn(3, 4, 6)", INIT), "fuse_norm", tolerance=32)
    assert "rms_norm(" in built.source


NEAR = [
    "return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5)",
    "return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + 1e-5)",
    "return (x - x.mean(1, keepdim=True)) / torch.sqrt(x.var(1, keepdim=True, correction=0) + 1e-5)",
    "return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(1, keepdim=True, correction=0) + 1e-5)",
    "return (x - x.mean((1, 2), keepdim=True)) / torch.sqrt(x.var((1, 2), keepdim=True, correction=0) + 1e-5)",
    "return (x - x.mean()) / torch.sqrt(x.var(-1, keepdim=True, correction=0) + 1e-5)",
    "return x / torch.sqrt(x.var(-1, keepdim=True, correction=0) + 1e-5)",
    "return (x + x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True, correction=0) + 1e-5)",
    "return (x - x.mean(-1, keepdim=True)) * torch.sqrt(x.var(-1, keepdim=True, correction=0) + 1e-5)",
    "return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True, correction=0))",
    "return x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + 1e-6)",
    "return x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-6)",
    "return x * torch.rsqrt(x.pow(2).mean((0, 1, 2), keepdim=True) + 1e-6)",
    "return x * torch.rsqrt(x.pow(4).mean(-1, keepdim=True) + 1e-6)",
    "return x * torch.rsqrt(x.abs().mean(-1, keepdim=True) + 1e-6)",
    "return y * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)",
    "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) - 1e-6)",
    "return x + torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)",
    "return x / (x.pow(2).mean(-1, keepdim=True) + 1e-6)",
    "return x / (torch.sqrt(x.pow(2).mean(-1, keepdim=True)) + 1e-6)",
    "return x / torch.sqrt((x * y).mean(-1, keepdim=True).abs() + 1e-6)",
    "return F.layer_norm(x, (6,)) * y",
    "return F.layer_norm(x, (6,), self.w, self.b) * self.w",
    "return F.layer_norm(x, (4, 6)) * self.w",
    "n = F.layer_norm(x, (6,))\nreturn n * self.w + n",
]


@pytest.mark.parametrize("forward", NEAR)
def test_near_misses(forward: str) -> None:
    task = make_task(forward, "torch.randn(3, 4, 6), torch.randn(3, 4, 6)", INIT, args="x, y")
    assert not applies("fuse_norm", task)


SOFTMAX = [
    "e = x.exp()\nreturn e / e.sum(-1, keepdim=True)",
    "e = torch.exp(x - x.amax(-1, keepdim=True))\nreturn e / e.sum(-1, keepdim=True)",
    "e = torch.exp(x - x.max(1, keepdim=True).values)\nreturn e / e.sum(1, keepdim=True)",
    "e = torch.exp(x - x.max(dim=-1, keepdim=True)[0])\nreturn e / torch.sum(e, dim=-1, keepdim=True)",
    "e = torch.exp(x - x.amax(1, keepdim=True))\nreturn e / e.sum(-1, keepdim=True)",
    "e = torch.exp(x - x.amax((1, 2), keepdim=True))\nreturn e / e.sum(1, keepdim=True)",
    "e = (x * 2).exp()\nreturn e / e.sum(0, keepdim=True)",
    "return torch.log(torch.exp(x).sum(-1))",
    "return torch.log(x.exp().sum((1, 2), keepdim=True))",
    "return x.exp().sum(1, keepdim=True).log() * 2",
    "return x - torch.logsumexp(x, -1, keepdim=True)",
    "return x - torch.logsumexp(x, 1, True)",
    "return x - x.exp().sum(-1, keepdim=True).log()",
    "s = x - x.amax(-1, keepdim=True)\nreturn s - s.exp().sum(-1, keepdim=True).log()",
    "s = x - x.max(2, keepdim=True)[0]\nreturn s - torch.log(torch.exp(s).sum(2, keepdim=True))",
    "e = torch.exp(x - y)\nreturn e / e.sum(-1, keepdim=True)",
    "e = torch.exp(x - x.mean(-1, keepdim=True))\nreturn e / e.sum(-1, keepdim=True)",
    "e = torch.exp(-x)\nreturn e / e.sum(1, keepdim=True) * y",
    "e = x.exp()\nreturn (e / e.sum(-1, keepdim=True)) @ y.mT",
    "z = x + y\nreturn z - torch.logsumexp(z, 0, keepdim=True)",
]


@pytest.mark.parametrize("forward", SOFTMAX)
def test_softmax(forward: str) -> None:
    inputs = "torch.randn(3, 4, 6), torch.randn(3, 4, 6)"
    built = check(make_task(forward, inputs, args="x, y"), "fuse_softmax", tolerance=32)
    assert "exp(" not in built.source.split("class ModelNew")[1].replace("logsumexp(", "")


NO_SOFTMAX = [
    "e = x.exp()\nreturn e / e.sum(-1, keepdim=True).sqrt()",
    "e = x.exp()\nreturn e / e.sum((1, 2), keepdim=True)",
    "e = x.exp()\nreturn e / e.sum()",
    "e = x.exp()\nreturn e / y.exp().sum(-1, keepdim=True)",
    "e = x.exp()\nreturn e / (e.sum(-1, keepdim=True) + 1e-6)",
    "e = x.exp()\nreturn e.sum(-1, keepdim=True) / e",
    "e = x.exp()\nreturn e * e.sum(-1, keepdim=True)",
    "e = x.expm1()\nreturn e / e.sum(-1, keepdim=True)",
    "e = x.exp2()\nreturn e / e.sum(-1, keepdim=True)",
    "e = x.abs()\nreturn e / e.sum(-1, keepdim=True)",
    "e = x.exp()\nreturn e / e.mean(-1, keepdim=True)",
    "e = x.exp()\nreturn e / e.amax(-1, keepdim=True)",
    "return torch.log(torch.exp(x).mean(-1))",
    "return torch.log2(torch.exp(x).sum(-1))",
    "return torch.log(torch.exp(x).sum(-1) + 1)",
    "return torch.log(x.abs().sum(-1))",
    "return x - torch.logsumexp(y, -1, keepdim=True)",
    "return x + torch.logsumexp(x, -1, keepdim=True)",
    "return x - torch.logsumexp(x, (1, 2), keepdim=True)",
    "return torch.logsumexp(x, -1, keepdim=True) - x",
    "return x - y.abs().sum(-1, keepdim=True).log()",
    "return torch.exp(x).cumsum(-1).log()",
]


@pytest.mark.parametrize("forward", NO_SOFTMAX)
def test_no_softmax(forward: str) -> None:
    inputs = "torch.randn(3, 4, 6), torch.randn(3, 4, 6)"
    assert not applies("fuse_softmax", make_task(forward, inputs, args="x, y"))
