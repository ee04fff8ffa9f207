"""Attention and its pieces, written out."""

from __future__ import annotations

from functools import partial

from cuda_l1.tasks.synth.sketch import Sketch
from cuda_l1.tasks.synth.stages.stage import Stage

_TOKENS = frozenset({"tokens"})
_HEADS = frozenset({"heads"})
_SCORES = {
    "scaled": "q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5",
    "cosine": "F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1) * 8.0",
    "capped": "30.0 * torch.tanh(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5 / 30.0)",
    "sum-normalised": "F.relu(q @ k.transpose(-2, -1)) + 0.01",
}
_WEIGHTS = {
    "softmax": "F.softmax(scores, dim=-1)",
    "squared": "F.relu(scores).square() / scores.shape[-1]",
    "sigmoid": "torch.sigmoid(scores - 2.0)",
    "l1": "scores.abs() / (scores.abs().sum(dim=-1, keepdim=True) + 1e-4)",
}


def _attend(s: Sketch, scores: str, *, weights: str, masked: str) -> None:
    """Lines from q, k, v to `x`."""
    time, head = s.shape[-2], s.shape[-1]
    batches = s.numel // (time.value * head.value)
    s.flops += 4.0 * s.numel * time.value
    s.bytes += 12 * batches * time.value**2
    s.line(f"scores = {_SCORES[scores]}")
    if masked == "causal":
        s.line("future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)")
        s.line("scores = scores.masked_fill(future, -1e9)")
    elif masked == "window":
        s.line("place = torch.arange(scores.shape[-1], device=x.device)")
        s.line("far = (place[None, :] - place[:, None]).abs() > 4")
        s.line("scores = scores.masked_fill(far, -1e9)")
    elif masked == "bias":
        bias = s.input("bias", (time, time))
        s.line(f"scores = scores + {bias}")
    elif masked == "padding":
        mask = s.input("mask", (s.shape[0], time), "torch.rand({shape}) < 0.8")
        ones = ":, " + "None, " * (len(s.shape) - 2) + ":"
        s.line(f"scores = scores.masked_fill(~{mask}[{ones}], -1e9)")
    s.line(f"weights = {_WEIGHTS[weights]}")


def _choices(s: Sketch) -> tuple[str, str, str]:
    scores = s.draw.weighted(list(_SCORES), (5, 2, 1, 1))
    weights = s.draw.weighted(list(_WEIGHTS), (6, 1, 1, 1)) if scores == "scaled" else "softmax"
    masked = s.draw.choice(("none", "causal", "window", "bias", "padding"))
    if weights != "softmax":
        masked = "none"
    return scores, weights, masked


def _projected(s: Sketch) -> None:
    """One head with its projections."""
    scores, weights, masked = _choices(s)
    s.flops += 6.0 * s.numel * s.width.value
    for name in ("query", "key", "value"):
        layer = s.layer(name, "nn.Linear({}, {}, bias=False)", s.width, s.width)
        s.line(f"{name[0]} = {layer}(x)")
    _attend(s, scores, weights=weights, masked=masked)
    s.set("weights @ v", cost=3)


def _multi_head(s: Sketch) -> None:
    scores, weights, masked = _choices(s)
    heads = s.draw.choice((2, 4))
    qkv = s.layer("qkv", "nn.Linear({}, {})", s.width, s.width.times(3), flops=6.0 * s.numel * s.width.value)
    s.line(f"qkv = {qkv}(x).unflatten(-1, (3, {heads}, -1))")
    s.line("q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)")
    s.bytes += 24 * s.numel
    _attend(s, scores, weights=weights, masked=masked if masked != "padding" else "causal")
    s.line("y = (weights @ v).transpose(1, 2).flatten(2)")
    s.set(f"{s.layer('out', 'nn.Linear({}, {})', s.width, s.width)}(y)")


def _given(s: Sketch) -> None:
    """Of queries, keys and values that are inputs."""
    scores, weights, masked = _choices(s)
    key, value = s.input("key", s.shape), s.input("value", s.shape)
    s.line(f"q, k, v = x, {key}, {value}")
    _attend(s, scores, weights=weights, masked=masked)
    s.set("weights @ v")


def _fused(s: Sketch) -> None:
    key, value = s.input("key", s.shape), s.input("value", s.shape)
    s.flops += 4.0 * s.numel * s.shape[-2].value
    causal = ", is_causal=True" if s.draw.chance(0.5) else ""
    s.set(f"F.scaled_dot_product_attention({{x}}, {key}, {value}{causal})")


def _linear(s: Sketch, feature: str) -> None:
    """Attention without a softmax over positions: the order of the products decides what it costs."""
    key, value = s.input("key", s.shape), s.input("value", s.shape)
    s.flops += 4.0 * s.numel * s.shape[-2].value
    s.bytes += 4 * s.numel // s.shape[-1].value * s.shape[-2].value
    s.line(f"q, k = {feature.replace('{}', 'x')}, {feature.replace('{}', key)}")
    s.line("weights = q @ k.transpose(-2, -1)")
    s.set(f"(weights @ {value}) / (weights.sum(dim=-1, keepdim=True) + 1.0)", cost=2)


def _rotary(s: Sketch) -> None:
    s.line("time, width = x.shape[-2], x.shape[-1]")
    s.line("rate = 10000.0 ** (-torch.arange(0, width, 2, device=x.device) / width)")
    s.line("angle = torch.arange(time, device=x.device)[:, None] * rate[None, :]")
    s.line("even, odd = x[..., 0::2], x[..., 1::2]")
    s.set("torch.cat((even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()), dim=-1)", cost=5)


def _shared_keys(s: Sketch) -> None:
    """One head of keys and values for all heads of queries, repeated in memory."""
    shared = (s.shape[0], s.shape[2], s.shape[3])
    key, value = s.input("key", shared), s.input("value", shared)
    s.line(f"k = {key}.unsqueeze(1).repeat(1, x.shape[1], 1, 1)")
    s.line(f"v = {value}.unsqueeze(1).repeat(1, x.shape[1], 1, 1)")
    s.line("q = x")
    s.bytes += 8 * s.numel
    _attend(s, "scaled", weights="softmax", masked=s.draw.choice(("none", "causal", "bias")))
    s.set("weights @ v")


STAGES = (
    Stage("attention", "attention", _TOKENS, _projected, 8, 5),
    Stage("multi-head-attention", "attention", _TOKENS, _multi_head, 6, 6),
    Stage("given-attention", "attention", _HEADS, _given, 14, 4),
    Stage("fused-attention", "attention", _HEADS, _fused, 5, 2),
    Stage("shared-keys", "attention", _HEADS, _shared_keys, 5, 4),
    Stage("linear-attention-elu", "attention", _HEADS, partial(_linear, feature="F.elu({}) + 1.0"), 4, 4),
    Stage("linear-attention-relu", "attention", _HEADS, partial(_linear, feature="F.relu({})"), 3, 4),
    Stage("linear-attention-exp", "attention", _HEADS, partial(_linear, feature="torch.exp(-{} * {})"), 2, 4),
    Stage("rotary", "layout", _HEADS | _TOKENS, _rotary, 4, 3),
)
