"""Element by element: activations, arithmetic with constants and parameters, and with a second input."""

from __future__ import annotations

from functools import partial

from cuda_l1.tasks.synth.sketch import Sketch
from cuda_l1.tasks.synth.stages.stage import ANY, DENSE, EVEN, Stage

_ACTIVATIONS = {
    "relu": ("F.relu({x})", "nn.ReLU()"),
    "gelu": ("F.gelu({x})", "nn.GELU()"),
    "gelu-tanh": ('F.gelu({x}, approximate="tanh")', 'nn.GELU(approximate="tanh")'),
    "silu": ("F.silu({x})", "nn.SiLU()"),
    "tanh": ("torch.tanh({x})", "nn.Tanh()"),
    "sigmoid": ("torch.sigmoid({x})", "nn.Sigmoid()"),
    "softplus": ("F.softplus({x})", "nn.Softplus()"),
    "elu": ("F.elu({x})", "nn.ELU()"),
    "leaky-relu": ("F.leaky_relu({x}, 0.1)", "nn.LeakyReLU(0.1)"),
    "hardswish": ("F.hardswish({x})", "nn.Hardswish()"),
    "mish": ("F.mish({x})", "nn.Mish()"),
    "softsign": ("F.softsign({x})", "nn.Softsign()"),
    "selu": ("F.selu({x})", "nn.SELU()"),
    "relu6": ("F.relu6({x})", "nn.ReLU6()"),
    "logsigmoid": ("F.logsigmoid({x})", "nn.LogSigmoid()"),
    "tanhshrink": ("F.tanhshrink({x})", "nn.Tanhshrink()"),
}
_FORMULAS = {
    "square": "{x} * {x}",
    "cube": "{x} ** 3",
    "abs": "{x}.abs()",
    "sine": "torch.sin({x})",
    "cosine": "torch.cos({x})",
    "exp": "torch.exp({x}.clamp(max=4.0))",
    "log": "torch.log1p({x}.abs())",
    "root": "torch.sqrt({x} * {x} + 1e-6)",
    "lorentz": "1.0 / (1.0 + {x} * {x})",
    "bell": "torch.exp(-0.5 * {x} * {x})",
    "quick-gelu": "{x} * torch.sigmoid(1.702 * {x})",
    "snake": "{x} + torch.sin({x}) ** 2",
    "symmetric-log": "torch.sign({x}) * torch.log1p({x}.abs())",
    "erf": "torch.erf({x})",
    "arctan": "torch.atan({x})",
}
_CONSTANTS = ("0.1", "0.25", "0.5", "0.7", "1.5", "2.0", "3.0")


def _activation(s: Sketch, name: str) -> None:
    s.activate(*_ACTIVATIONS[name])


def _formula(s: Sketch, name: str) -> None:
    s.set(_FORMULAS[name], cost=2)


def _scale(s: Sketch) -> None:
    s.set(f"{{x}} * {s.draw.choice(_CONSTANTS)}")


def _divide(s: Sketch) -> None:
    s.set(f"{{x}} / {s.draw.choice(_CONSTANTS)}")


def _shift(s: Sketch) -> None:
    s.set(f"{{x}} {s.draw.choice('+-')} {s.draw.choice(_CONSTANTS)}")


def _clamp(s: Sketch) -> None:
    low, high = s.draw.choice((("-1.0", "1.0"), ("-0.5", "2.0"), ("0.0", "6.0"), ("-2.0", "0.5")))
    s.activate(f"torch.clamp({{x}}, {low}, {high})", f"nn.Hardtanh({low}, {high})")


def _weights(s: Sketch, drawing: str) -> str:
    """A parameter with one number per feature, in a shape that broadcasts."""
    ones = ", 1" * (len(s.shape) - 2) if s.channel == 1 else ""
    return s.layer("weight", "nn.Parameter(" + drawing.replace("SHAPE", f"{{}}{ones}") + ")", s.width)


def _affine(s: Sketch) -> None:
    s.set(f"{{x}} * {_weights(s, '1.0 + 0.2 * torch.randn(SHAPE)')} + {_weights(s, '0.2 * torch.randn(SHAPE)')}")


def _bias(s: Sketch) -> None:
    s.set(f"{{x}} + {_weights(s, '0.5 * torch.randn(SHAPE)')}")


def _layer_scale(s: Sketch) -> None:
    s.set(f"{{x}} * {_weights(s, '1.0 + 0.2 * torch.randn(SHAPE)')}")


_PAIRS = {
    "residual": ("residual", "{x} + {y}"),
    "gated": ("gate", "{x} * torch.sigmoid({y})"),
    "product": ("other", "{x} * {y}"),
    "difference": ("target", "{x} - {y}"),
    "larger-of": ("other", "torch.maximum({x}, {y})"),
    "lerp": ("other", "torch.lerp({x}, {y}, 0.3)"),
    "silu-gated": ("gate", "F.silu({x}) * {y}"),
    "squared-difference": ("target", "({x} - {y}) ** 2"),
    "tanh-mixed": ("other", "torch.tanh({x} + {y})"),
    "hypot": ("other", "torch.sqrt({x} * {x} + {y} * {y} + 1e-6)"),
}


def _pair(s: Sketch, name: str) -> None:
    argument, formula = _PAIRS[name]
    other = s.input(argument, s.shape)
    s.set(formula.replace("{y}", other), cost=2)


def _masked(s: Sketch) -> None:
    mask = s.input("mask", s.shape, "torch.rand({shape}) < 0.7")
    fill = s.draw.choice(("0.0", "-1.0"))
    s.set(f"torch.where({mask}, {{x}}, {fill})")


def _dropped_scale(s: Sketch) -> None:
    mask = s.input("mask", s.shape, "(torch.rand({shape}) < 0.9).float()")
    residual = s.input("residual", s.shape)
    s.set(f"{residual} + {{x}} * {mask} / 0.9", cost=3)


def _halves(s: Sketch, formula: str) -> None:
    s.line(f"left, right = x.chunk(2, dim={s.channel})")
    shape = list(s.shape)
    shape[s.channel] = s.width.over(2)
    s.become(s.kind, *shape)
    s.set(formula)


def _glu(s: Sketch, act: str) -> None:
    _halves(s, f"left * {act}")


def _pointwise() -> list[Stage]:
    found = [
        Stage(name, "activation", ANY, partial(_activation, name=name), 5 if name in ("relu", "gelu", "silu") else 2)
        for name in _ACTIVATIONS
    ]
    found += [Stage(name, "formula", ANY, partial(_formula, name=name), 2) for name in _FORMULAS]
    found += [Stage(name, "binary", DENSE, partial(_pair, name=name), 2) for name in _PAIRS]
    return found


STAGES = (
    *_pointwise(),
    Stage("scale", "constant", ANY, _scale, 6),
    Stage("divide", "constant", ANY, _divide, 3),
    Stage("shift", "constant", ANY, _shift, 5),
    Stage("clamp", "activation", ANY, _clamp, 3),
    Stage("bias", "parameter", DENSE, _bias, 5),
    Stage("affine", "parameter", DENSE, _affine, 4),
    Stage("layer-scale", "parameter", DENSE, _layer_scale, 4),
    Stage("masked", "binary", DENSE, _masked, 3),
    Stage("dropped-residual", "binary", DENSE, _dropped_scale, 2),
    Stage("glu", "halves", EVEN, partial(_glu, act="torch.sigmoid(right)"), 3),
    Stage("swiglu", "halves", EVEN, partial(_glu, act="F.silu(right)"), 3),
    Stage("geglu", "halves", EVEN, partial(_glu, act="F.gelu(right)"), 3),
    Stage("halves-difference", "halves", EVEN, partial(_halves, formula="left - right"), 1),
)
