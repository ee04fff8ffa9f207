"""channels_last, in_place, preallocation: layouts and memory change, values and returned memory do not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from graphs import Twins, applies, candidate, check, make_task

from cuda_l1.proposers.techniques import lifetimes

INIT = """self.c = nn.Conv2d(3, 4, 3, padding=1)
self.d = nn.Conv2d(4, 4, 3, groups=2, bias=False)
self.t = nn.ConvTranspose2d(4, 3, 2, stride=2)
self.n = nn.BatchNorm2d(4)
self.g = nn.GroupNorm(2, 4)
self.fc = nn.Linear(144, 5)
self.v = nn.Conv3d(3, 4, 2)"""
IMAGE = "torch.randn(2, 3, 6, 6)"
CONVOLUTIONS = [
    "self.c(x)",
    "self.c(x).relu()",
    "self.d(self.c(x))",
    "self.d(F.relu(self.c(x)))",
    "self.t(self.c(x))",
    "self.n(self.c(x)).relu()",
    "self.g(self.c(x))",
    "F.max_pool2d(self.c(x), 2)",
    "F.adaptive_avg_pool2d(self.c(x), 1).flatten(1)",
    "self.fc(self.c(x).flatten(1))",
    "self.c(x).view(2, -1)",
    "self.c(x).view(2, 4, 36).softmax(-1)",
    "self.c(x).permute(0, 2, 3, 1)",
    "self.c(x) + self.c(x).flip(3)",
    "torch.cat([self.c(x), x], 1)",
    "self.c(x * 2 + 1).sum((2, 3))",
    "self.c(x.transpose(2, 3))",
    "self.v(torch.stack([x, x, x], 2))",
    "self.c(F.pad(x, (1, 1, 1, 1))).amax(1)",
    "self.c(x).mean(1, keepdim=True) * x",
    "F.interpolate(self.c(x), scale_factor=2)",
]


@pytest.mark.parametrize("text", CONVOLUTIONS)
def test_channels_last(text: str) -> None:
    built = check(make_task(f"return {text}", IMAGE, INIT), "channels_last", tolerance=32)
    assert "channels_last" in built.source.split("class ModelNew")[1]


NO_CONVOLUTIONS = [
    "F.max_pool2d(x, 2)",
    "F.conv1d(x[:, :, 0], self.c.weight[:, :, 0])",
    "F.unfold(x, 3)",
    "self.g(x[:, :1].repeat(1, 4, 1, 1))",
    "F.interpolate(x, scale_factor=2)",
    "x @ x.mT",
    "self.c(x.contiguous(memory_format=torch.channels_last))",
    "F.conv2d(x[:, :1].contiguous(), self.c.weight[:, :1])",
    "F.avg_pool2d(x, 2)",
    "self.fc(x.flatten(1)[:, :1].repeat(1, 144))",
    "x.permute(0, 2, 3, 1)",
    "self.c(x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2))",
    "x.relu().sum((2, 3))",
    "F.pixel_unshuffle(x, 2)",
    "F.adaptive_avg_pool2d(x, 1)",
    "x.softmax(1)",
    "F.grid_sample(x, torch.zeros(2, 3, 3, 2), align_corners=False)",
    "F.conv2d(F.adaptive_avg_pool2d(x, 1), self.c.weight[:, :, :1, :1])",
    "F.conv2d(x.mean((2, 3), keepdim=True), self.c.weight[:, :, :1, :1])",
    "F.conv_transpose1d(x[:, :, 0], self.c.weight[:3, :, 0])",
]


@pytest.mark.parametrize("text", NO_CONVOLUTIONS)
def test_no_other_layout(text: str) -> None:
    forward = f"return {text}"
    assert not applies("channels_last", make_task(forward, IMAGE, INIT))


CHAINS = [
    "self.l(x).relu()",
    "F.gelu(self.l(x)) * 2 + 1",
    "torch.sigmoid(self.l(x)) * torch.tanh(self.l(x * 2))",
    "(x + 1).exp().neg()",
    "x + x.abs().sqrt() * 2",
    "1 + x.sin()",
    "x * x.exp().add(1)",
    "F.silu(self.l(x)).clamp(-1, 1).square()",
    "(x @ x.mT).masked_fill(x @ x.mT > 0, 0.5)",
    "F.leaky_relu(self.l(x), 0.2).abs().log1p()",
    "F.hardtanh(x.sum(0) * 3) - 1",
    "x.cumsum(1).div(2).softmax(-1)",
    "(x.exp() + 1).reciprocal().reshape(-1)",
    "torch.stack([x, x]).mul(0.5).sum(0)",
    "(self.l(x) + self.b).relu()",
    "x.t().exp().add(1) @ x",
    "F.layer_norm(x, (4,)) * self.b + x",
    "x.std(1, keepdim=True) + 1",
    "(x.double() * 2).float()",
    "x.exp().exp().exp().mul(1e-3).tanh()",
]
SMALL = "self.l = nn.Linear(4, 4)\nself.b = nn.Parameter(torch.randn(4))"


@pytest.mark.parametrize("text", CHAINS)
def test_in_place(text: str) -> None:
    built = check(make_task(f"return {text}", "torch.randn(4, 4)", SMALL), "in_place", tolerance=32)
    assert "_(" in built.source.split("def forward(self")[-1]


KEEPS = [
    "return x.exp()",
    "return x * 2",
    "return self.b * x",
    "y = x.exp()\nreturn y.relu(), y",
    "y = x.exp()\nz = y.sin()\nreturn z @ y",
    "y = x.view(-1)\nreturn y.exp()",
    "y = x.t()\nreturn y * 2",
    "y = x[1:]\nreturn y.relu()",
    "return self.l(x).to(torch.float64)",
    "return self.l(x) > 0",
    "return x.sum(0) * x",
    "return x.expand(3, 4, 4).mul(2)",
    "y = self.l(x)\nv = y.view(-1)\nreturn y.relu() @ v.view(4, 4)",
    "return self.l(x).softmax(-1)",
    "y = x.exp().t()\nreturn y.mul(2)",
    "return x.exp()[:, :2].neg()",
    "y = x.exp()\nreturn y.view(2, 8), y.sin()",
    "return torch.relu(F.dropout(x, 0.5, False))",
    "return torch.relu(x.reshape(4, 4))",
    "return torch.relu(x.contiguous())",
    "return x.long().mul(0.5)",
    "y = x.exp()\nreturn y.sum(1).unsqueeze(1).expand(4, 4).mul(2) @ y",
]


@pytest.mark.parametrize("forward", KEEPS)
def test_memory_that_somebody_reads_is_kept(forward: str) -> None:
    assert not applies("in_place", make_task(forward, "torch.randn(4, 4)", SMALL))


def test_a_long_chain_is_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unrolled recurrence of 300 steps, all in one memory: what each looks into is not searched from the start."""
    asked = 0
    own = lifetimes.is_view

    def counted(node: Any) -> bool:
        nonlocal asked
        asked += 1
        return own(node)

    monkeypatch.setattr(lifetimes, "is_view", counted)
    task = make_task("for _ in range(300):\n    x = x.sin()\nreturn x + 1.0", "torch.randn(4, 4)", SMALL)
    assert candidate(task, "in_place").source.count("sin_(") > 290
    assert 300 < asked < 10_000


def test_arguments_and_weights_are_not_written() -> None:
    forward = "y = x.view(4, 4)\nreturn (y + 1).relu() * self.b.view(4).exp().neg()"
    twins = Twins(task := make_task(forward, "torch.randn(4, 4)", SMALL), candidate(task, "in_place").source)
    x, before = torch.randn(4, 4), twins.model_new.b.clone()
    kept = x.clone()
    with torch.no_grad():
        twins.model_new(x)
    assert torch.equal(x, kept) and torch.equal(twins.model_new.b, before)


LARGE = [
    "(x @ y).sum(0)",
    "torch.mm(x, y) @ y[:, :8]",
    "F.linear(x, y).relu().sum(1)",
    "torch.exp(x).sum(1)",
    "torch.sigmoid(x).mean()",
    "torch.tanh(x + y).sum()",
    "(x * y).amax(1)",
    "(x / (1 + y.abs())).sum(1)",
    "(x - y).norm()",
    "torch.softmax(x, -1) @ y[:, :4]",
    "torch.cat([x, y]).mean(0)",
    "x.cumsum(0).amin(1)",
    "torch.maximum(x, y).sum(0)",
    "F.gelu(x).sum(0)",
    "F.silu(x).sum(1)",
    "torch.addmm(x, x, y).sum(1)",
    "torch.bmm(x[None], y[None]).sum((0, 1))",
    "x.sin().sum() + y.cos().sum() * 2",
    "(x.abs().sqrt() @ y).sum(1)",
    "x.neg().exp().log1p().sum(0)",
    "(x.sigmoid() @ y.tanh()).sum()",
]
MIB = "torch.randn(512, 512), torch.randn(512, 512)"


@pytest.mark.parametrize("text", LARGE)
def test_preallocation(text: str) -> None:
    built = check(make_task(f"return {text}", MIB, args="x, y"), "preallocation", tolerance=32)
    assert "out=" in built.source.split("class ModelNew")[1]


KEPT = [
    "x @ y",
    "(x @ y).t()",
    "(x @ y).view(-1)",
    "(x @ y)[:4]",
    "torch.exp(x), torch.sin(y)",
    "x.sum(0)",
    "(x[:8] @ y).sum()",
    "torch.exp(x[:100]).sum()",
    "x.t().sum(0)",
    "torch.relu(x)",
    "x.relu().sum()",
    "x.sort().values.sum(0)",
    "F.layer_norm(x, (512,)).sum(0)",
    "x.view(-1).sum()",
    "(x > y).sum()",
    "torch.where(x > 0, x, y).sum()",
    "x.t().exp().sum()",
    "x.clone().sum(0)",
    "x.expand(2, 512, 512).sum()",
    "x.argsort()[:, 0]",
]


@pytest.mark.parametrize("text", KEPT)
def test_results_and_small_intermediates_are_allocated(text: str) -> None:
    assert not applies("preallocation", make_task(f"return {text}", MIB, args="x, y"))


def test_results_of_two_calls_do_not_share_memory() -> None:
    task = make_task("z = (x @ y).sin()\nreturn z @ y, z.sum(0)", MIB, args="x, y")
    twins = Twins(task, candidate(task, "preallocation").source)
    with torch.no_grad():
        first = twins.model_new(*(torch.randn(512, 512) for _ in range(2)))
        kept = [value.clone() for value in first]
        twins.model_new(*(torch.randn(512, 512) for _ in range(2)))
    assert all(torch.equal(one, two) for one, two in zip(first, kept, strict=True))
