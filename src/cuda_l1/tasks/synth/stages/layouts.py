"""Changes of layout, and work that algebra can remove."""

from __future__ import annotations

from functools import partial

from cuda_l1.tasks.synth.sketch import Dim, Sketch
from cuda_l1.tasks.synth.stages.stage import EVEN, FLAT, Stage

_MAPS = frozenset({"signal", "image"})


def _mixed_tokens(s: Sketch) -> None:
    """A linear layer over positions, through two transposes."""
    time = s.shape[1]
    mixer = s.layer("mixer", "nn.Linear({}, {})", time, time, flops=2.0 * s.numel * time.value)
    s.set(f"{mixer}({{x}}.transpose(1, 2)).transpose(1, 2)", cost=3)


def _channels_last(s: Sketch) -> None:
    """Features to the end for one operator, and back."""
    there, back = ("(0, 2, 1)", "(0, 2, 1)") if s.kind == "signal" else ("(0, 2, 3, 1)", "(0, 3, 1, 2)")
    if s.draw.chance(0.5):
        layer = s.layer("norm", "nn.LayerNorm({})", s.width)
    else:
        layer = s.layer("mix", "nn.Linear({}, {})", s.width, s.width, flops=2.0 * s.numel * s.width.value)
    s.set(f"{layer}({{x}}.permute{there}).permute{back}", cost=3)


_FORMULAS = {
    "flipped": "{x} + {x}.flip(-1)",
    "rolled": "{x} - 0.5 * {x}.roll(1, -1)",
    "rolled-mean": "({x} + {x}.roll(1, -1) + {x}.roll(-1, -1)) / 3.0",
    "joined-and-split": "torch.stack(({x}, torch.tanh({x})), dim=0).sum(dim=0)",
    "copied": "({x}.transpose(-2, -1).contiguous() * 2.0).transpose(-2, -1).contiguous()",
    "symmetrised": "torch.cat(({x}, -{x}), dim=-1).relu()",
    "repeated-mean": "{x}.repeat_interleave(2, dim=-1).unflatten(-1, (-1, 2)).mean(dim=-1) * {x}",
    "there-and-back": "torch.exp(torch.log({x} * {x} + 1.0)) * 0.5",
    "log-of-softmax": "torch.log(F.softmax({x}, dim=-1) + 1e-9)",
    "twice-the-same": "torch.sigmoid({x}) * torch.tanh({x}) + torch.sigmoid({x}) * {x}",
    "shifted-softmax": "F.softmax({x} + {x}.mean(dim=-1, keepdim=True), dim=-1)",
    "halved-and-doubled": "({x} * 0.5 + {x} * 0.25 + {x} * 0.25).abs()",
    "squared-root": "torch.sqrt(torch.square({x}) + 1e-12) + {x}",
    "sum-of-parts": "{x}.relu() - (-{x}).relu() + 0.5 * {x}.abs()",
    "exp-of-log-softmax": "torch.exp(F.log_softmax({x}, dim=-1)) * {x}",
    "mean-of-copies": "torch.stack([{x} * 0.5, {x} * 1.5, {x} * 2.5], dim=-1).mean(dim=-1)",
}
_WIDENING = frozenset({"symmetrised"})


def _formula(s: Sketch, name: str) -> None:
    s.set(_FORMULAS[name], cost=4)
    if name in _WIDENING:
        s.become("column", *s.shape[:-1], s.shape[-1].times(2))


def _concatenated(s: Sketch) -> None:
    other = s.input("other", s.shape)
    dim = s.channel
    s.set(f"torch.cat(({{x}}, {other}), dim={dim})", cost=2)
    shape = list(s.shape)
    shape[dim] = s.width.times(2)
    s.become(s.kind, *shape)


def _interleaved(s: Sketch) -> None:
    s.line("even, odd = x[..., 0::2], x[..., 1::2]")
    s.set(s.draw.choice(("torch.cat((even - odd, even + odd), dim=-1)", "torch.cat((odd, even), dim=-1)")), cost=3)


def _heads_merged(s: Sketch) -> None:
    s.set("{x}.transpose(1, 2).flatten(2)")
    heads, tiny = s.shape[1], s.shape[3]

    s.become("tokens", s.shape[0], s.shape[2], Dim(f"{heads.text} * {tiny.text}", heads.value * tiny.value))


def _patches(s: Sketch) -> None:
    """An image cut to tokens."""

    side = s.shape[2]
    s.set("{x}.flatten(2).transpose(1, 2)")
    s.become("tokens", s.shape[0], Dim(f"{side.text} * {side.text}", side.value**2), s.shape[1])


def _signal_tokens(s: Sketch) -> None:
    s.set("{x}.transpose(1, 2)")
    s.become("tokens", s.shape[0], s.shape[2], s.shape[1])


def _positions(s: Sketch) -> None:
    table = s.layer("positions", "nn.Parameter(0.5 * torch.randn({}, {}))", s.shape[1], s.shape[2])
    s.set(f"{{x}} + {table}")


def _embedded(s: Sketch) -> None:
    kinds = s.draw.choice((4, 16, 50))
    table = s.layer("table", f"nn.Embedding({kinds}, {{}})", s.width)
    which = s.input("kinds", s.shape[:-1], f"torch.randint(0, {kinds}, ({{shape}},))")
    s.set(f"{{x}} + {table}({which})", cost=2)


STAGES = (
    Stage("token-mixer", "layout", frozenset({"tokens"}), _mixed_tokens, 5, 3),
    Stage("channels-last", "layout", _MAPS, _channels_last, 6, 3),
    *(
        Stage(name, "algebra", FLAT | {"heads"} if name != "symmetrised" else FLAT, partial(_formula, name=name), 2, 2)
        for name in _FORMULAS
    ),
    Stage("concatenated", "layout", EVEN - {"image"}, _concatenated, 3, 2),
    Stage("interleaved", "layout", frozenset({"wide", "tokens"}), _interleaved, 3, 2),
    Stage("merged-heads", "layout", frozenset({"heads"}), _heads_merged, 10, 1),
    Stage("patches", "layout", frozenset({"image"}), _patches, 4, 1),
    Stage("signal-tokens", "layout", frozenset({"signal"}), _signal_tokens, 3, 1),
    Stage("positions", "layout", frozenset({"tokens"}), _positions, 4, 2),
    Stage("embedded", "layout", FLAT, _embedded, 3, 2),
)
