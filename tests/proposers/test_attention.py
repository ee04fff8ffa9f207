"""attention: written-out forms become the fused kernel; forms with another scale, axis or reader stay."""

from __future__ import annotations

import itertools

import pytest
import torch
from captures import hold_to_reference
from graphs import applies, check, make_task, namespace

from cuda_l1.proposers.techniques import build

QKV = "torch.randn(2, 3, 5, 4), torch.randn(2, 3, 7, 4), torch.randn(2, 3, 7, 6)"
SCORES = [
    "q @ k.transpose(-2, -1) / math.sqrt(4)",
    "torch.matmul(q * 0.5, k.mT)",
    "(q / 2) @ k.permute(0, 1, 3, 2)",
    "torch.einsum('bhqd,bhkd->bhqk', q, k) * 0.3",
    "q @ k.transpose(3, 2)",
]
MASKS = [
    "s",
    "s + self.bias",
    "s.masked_fill(self.hide, float('-inf'))",
    "s.masked_fill(self.hide, -1e9)",
    "torch.where(~self.hide, s, -1e9)",
    "(s + self.bias).masked_fill(self.hide, float('-inf'))",
]
INIT = """self.bias = nn.Parameter(torch.randn(5, 7))
self.register_buffer('hide', torch.rand(2, 1, 5, 7) > 0.7)
self.hide[..., 0] = False"""


@pytest.mark.parametrize(("scores", "mask"), list(itertools.product(SCORES, MASKS)))
def test_written_out(scores: str, mask: str) -> None:
    forward = f"s = {scores}\nreturn torch.softmax({mask}, -1) @ v"
    built = check(make_task(forward, QKV, INIT, args="q, k, v"), "attention", tolerance=32)
    assert "softmax(" not in built.source.split("class ModelNew")[1]


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("mask", ["s", "s + self.bias"])
def test_fewer_dimensions(rank: int, mask: str) -> None:
    lead = "2, " * (rank - 2)
    inputs = f"torch.randn({lead}5, 4), torch.randn({lead}7, 4), torch.randn({lead}7, 6)"
    check(
        make_task(f"s = q @ k.transpose(-2, -1)\nreturn F.softmax({mask}, dim=-1) @ v", inputs, INIT, args="q, k, v"),
        "attention",
        tolerance=32,
    )


CAUSAL = [
    "s.masked_fill(torch.triu(torch.ones(5, 5, dtype=torch.bool, device=q.device), 1), float('-inf'))",
    "s + torch.triu(torch.full((5, 5), float('-inf'), device=q.device), diagonal=1)",
    "s.masked_fill(torch.tril(torch.ones(5, 5, device=q.device)) == 0, -1e9)",
    "torch.where(torch.arange(5)[:, None] >= torch.arange(5), s, -1e30)",
]


@pytest.mark.parametrize("mask", CAUSAL)
def test_causal_masks_are_recognised_by_value(mask: str) -> None:
    forward = f"s = q @ k.mT * 0.5\nreturn torch.softmax({mask}, -1) @ v"
    built = check(make_task(forward, "*torch.randn(3, 2, 3, 5, 4)", args="q, k, v"), "attention", tolerance=32)
    assert "0.0, True, scale=0.5" in built.source


def test_a_mask_that_hides_other_keys_is_passed_on() -> None:
    mask = "torch.triu(torch.ones(5, 5, dtype=torch.bool), 2)"
    forward = f"return torch.softmax((q @ k.mT).masked_fill({mask}, float('-inf')), -1) @ v"
    built = check(make_task(forward, "*torch.randn(3, 2, 3, 5, 4)", args="q, k, v"), "attention", tolerance=32)
    assert "0.0, False, scale=1.0" in built.source


NEAR = [
    "return torch.softmax(s, -2) @ v",
    "return torch.softmax(s, 0) @ v",
    "p = torch.softmax(s, -1)\nreturn p @ v, p",
    "p = torch.softmax(s, -1)\nreturn (p * 2) @ v + p.sum()",
    "return torch.softmax(s, -1) @ v + s.sum()",
    "return F.dropout(torch.softmax(s, -1), 0.1, True) @ v",
    "return torch.relu(s) @ v",
    "return torch.sigmoid(s) @ v",
    "return torch.log_softmax(s, -1) @ v",
    "return torch.softmax(s.exp(), -1) @ v",
    "return torch.softmax(s * s, -1) @ v",
    "return torch.softmax(torch.tanh(s / 30) * 30, -1) @ v",
    "return torch.softmax(s * self.scale, -1) @ v",
    "return torch.softmax(s.masked_fill(self.hide, -1.0), -1) @ v",
    "return torch.softmax(s.masked_fill(self.hide, 0.0), -1) @ v",
    "return torch.softmax(torch.where(self.hide, -1e9, s), -1) * 0.5 @ v",
    "return torch.softmax(s, -1).mT @ s.detach()",
    "return (torch.softmax(s, -1) + 1) @ v",
    "return torch.softmax(s, -1, dtype=torch.float64).float() @ v",
    "return torch.softmax(q, -1) @ k.mT",
    "s[..., 0] = 0\nreturn torch.softmax(s, -1) @ v",
    "return v.mT @ torch.softmax(s, -1).mT",
]


@pytest.mark.parametrize("forward", NEAR)
def test_near_misses(forward: str) -> None:
    init = INIT + "\nself.scale = nn.Parameter(torch.ones(()))"
    task = make_task("s = q @ k.mT / 2\n" + forward, QKV, init, args="q, k, v")
    assert not applies("attention", task)


def test_batches_that_broadcast_stay() -> None:
    inputs = "torch.randn(2, 3, 5, 4), torch.randn(2, 1, 7, 4), torch.randn(2, 1, 7, 6)"
    assert not applies("attention", make_task("return torch.softmax(q @ k.mT, -1) @ v", inputs, args="q, k, v"))


# ── inputs at any address (the fused kernels of a GPU load 16 bytes at a time) ────────────────────

WRITTEN = "return torch.softmax(q @ k.mT / 2, -1) @ v"


def test_inputs_of_forward_are_aligned_and_results_are_not_looked_at() -> None:
    built = build(make_task(WRITTEN, QKV, args="q, k, v"), ["attention"], "cuda")
    assert built is not None and built.source.count("aligned(") == 1 + 3
    projected = "q, k, v = self.l(x).chunk(3, -1)\n" + WRITTEN
    task = make_task(projected, "torch.randn(2, 3, 5, 4)", "self.l = nn.Linear(4, 12)")
    inside = build(task, ["attention"], "cuda")
    assert inside is not None and "aligned" not in inside.source
    on_cpu = build(make_task(WRITTEN, QKV, args="q, k, v"), ["attention"], "cpu")
    assert on_cpu is not None and "aligned" not in on_cpu.source


def test_what_begins_elsewhere_is_copied() -> None:
    built = build(make_task(WRITTEN, QKV, args="q, k, v"), ["attention"], "cuda")
    assert built is not None
    aligned = namespace(built.source)["aligned"]
    memory = torch.randn(65)
    there, beside = memory[:64].view(8, 8).t(), memory[1:].view(8, 8).t()
    assert aligned(there) is there
    copied = aligned(beside)
    assert copied.data_ptr() % 16 == 0 and copied.stride() == beside.stride() and torch.equal(copied, beside)


@pytest.mark.gpu
@pytest.mark.parametrize("mask", ["s", "s + self.bias"])
@pytest.mark.parametrize("offset", [1, 3])
def test_on_a_gpu_inputs_may_begin_anywhere(mask: str, offset: int) -> None:
    inputs = "torch.randn(2, 4, 64, 64), torch.randn(2, 4, 64, 64), torch.randn(2, 4, 64, 64)"
    forward = f"s = q @ k.mT / 8\nreturn torch.softmax({mask}, -1) @ v"
    task = make_task(forward, inputs, "self.bias = nn.Parameter(torch.randn(4, 64, 64))", args="q, k, v")
    built = build(task, ["attention"], "cuda")
    assert built is not None
    hold_to_reference(built.source, tolerance=1e-3, offset=offset)
