"""From many elements to few: along features, along positions, over windows."""

from __future__ import annotations

from functools import partial

from cuda_l1.tasks.synth.sketch import Sketch
from cuda_l1.tasks.synth.stages.stage import DENSE, EVEN, FLAT, Stage

_OVER_FEATURES = {
    "sum": "{x}.sum(dim=DIM)",
    "mean": "{x}.mean(dim=DIM)",
    "max": "{x}.amax(dim=DIM)",
    "min": "{x}.amin(dim=DIM)",
    "log-sum-exp": "torch.logsumexp({x}, dim=DIM)",
    "variance": "{x}.var(dim=DIM)",
    "root-mean-square": "torch.sqrt({x}.pow(2).mean(dim=DIM) + 1e-6)",
    "length": "torch.linalg.vector_norm({x}, dim=DIM)",
    "absolute-sum": "{x}.abs().sum(dim=DIM)",
    "spread": "{x}.amax(dim=DIM) - {x}.amin(dim=DIM)",
    "entropy": "-(F.softmax({x}, dim=DIM) * F.log_softmax({x}, dim=DIM)).sum(dim=DIM)",
    "soft-maximum": "(F.softmax({x}, dim=DIM) * {x}).sum(dim=DIM)",
    "mean-of-squares": "({x} * {x}).mean(dim=DIM)",
}


def _features(s: Sketch, name: str) -> None:
    s.set(_OVER_FEATURES[name].replace("DIM", str(s.channel)), cost=2)
    shape = [dim for index, dim in enumerate(s.shape) if index != s.channel % len(s.shape)]
    s.become("column", *shape)


def _positions(s: Sketch, how: str) -> None:
    """Tokens, a signal or an image become one row per sample."""
    dims = {"tokens": "1", "signal": "-1", "image": "(2, 3)"}[s.kind]
    formulas = {
        "mean": f"{{x}}.mean(dim={dims})",
        "sum": f"{{x}}.sum(dim={dims})",
        "max": f"{{x}}.amax(dim={dims})",
        "log-sum-exp": f"torch.logsumexp({{x}}, dim={dims})",
        "mean-and-max": f"{{x}}.mean(dim={dims}) + {{x}}.amax(dim={dims})",
    }
    s.set(formulas[how])
    s.become("wide", s.shape[0], s.shape[1] if s.kind != "tokens" else s.shape[2])


def _adaptive(s: Sketch) -> None:
    pool = "AdaptiveAvgPool" if s.draw.chance(0.6) else "AdaptiveMaxPool"
    rank = 1 if s.kind == "signal" else 2
    s.set(f"{s.layer('pool', f'nn.{pool}{rank}d(1)')}({{x}}).flatten(1)")
    s.become("wide", s.shape[0], s.shape[1])


def _last_token(s: Sketch) -> None:
    s.set("{x}[:, -1]")
    s.become("wide", s.shape[0], s.shape[2])


def _attention_pool(s: Sketch) -> None:
    score = s.layer("score", "nn.Linear({}, 1)", s.width)
    s.line(f"weights = F.softmax({score}(x), dim=1)")
    s.set("(weights * {x}).sum(dim=1)", cost=2)
    s.become("wide", s.shape[0], s.shape[2])


def _masked_mean(s: Sketch) -> None:
    mask = s.input("mask", s.shape[:2], "(torch.rand({shape}) < 0.8).float()")
    s.line(f"weights = {mask}[:, :, None]")
    s.set("({x} * weights).sum(dim=1) / (weights.sum(dim=1) + 1.0)", cost=2)
    s.become("wide", s.shape[0], s.shape[2])


def _top(s: Sketch) -> None:
    s.set(f"{{x}}.topk({s.draw.choice((2, 4, 8))}, dim=-1).values.mean(dim=-1)")
    s.become("column", *s.shape[:-1])


def _grouped(s: Sketch) -> None:
    """Features in groups, the largest of each."""
    groups = s.draw.choice((2, 4))
    how = s.draw.choice(("amax", "mean", "sum"))
    if s.channel == 1:
        s.set(f"{{x}}.unflatten(1, ({groups}, -1)).{how}(dim=1)")
    else:
        s.set(f"{{x}}.unflatten(-1, ({groups}, -1)).{how}(dim=-2)")
    shape = list(s.shape)
    shape[s.channel] = s.width.over(groups)
    s.become({"wide": "rows", "tokens": "column", "signal": "column", "image": "column"}[s.kind], *shape)


STAGES = (
    *(Stage(name, "reduce", DENSE, partial(_features, name=name), 2) for name in _OVER_FEATURES),
    *(
        Stage(
            f"{how}-over-positions", "pool", frozenset({"tokens", "signal", "image"}), partial(_positions, how=how), 3
        )
        for how in ("mean", "sum", "max", "log-sum-exp", "mean-and-max")
    ),
    Stage("adaptive-pool", "pool", frozenset({"signal", "image"}), _adaptive, 6),
    Stage("last-token", "pool", frozenset({"tokens"}), _last_token, 2),
    Stage("attention-pool", "pool", frozenset({"tokens"}), _attention_pool, 4, 3),
    Stage("masked-mean", "pool", frozenset({"tokens"}), _masked_mean, 3, 2),
    Stage("top-values", "reduce", FLAT, _top, 3, 2),
    Stage("grouped", "reduce", EVEN, _grouped, 4, 2),
)
