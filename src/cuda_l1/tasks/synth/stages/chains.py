"""Many small operators: recurrences over time, and iterations whose launches cost more than their arithmetic."""

from __future__ import annotations

from functools import partial

from cuda_l1.tasks.synth.sketch import Sketch
from cuda_l1.tasks.synth.stages.stage import Stage

_TOKENS = frozenset({"tokens"})
_WIDE = frozenset({"rows", "wide"})
_ANY = _WIDE | _TOKENS

_STEPS = {
    "smoothing": "state = 0.9 * state + 0.1 * step",
    "leaky": "state = torch.tanh(0.8 * state + step)",
    "gated-scan": "state = torch.sigmoid(step) * state + (1.0 - torch.sigmoid(step)) * torch.tanh(step)",
    "momentum": "state = 0.5 * state + step / (1.0 + step.abs())",
    "clipped": "state = torch.clamp(state + step, -1.0, 1.0)",
    "running-max": "state = torch.maximum(0.95 * state, step)",
}


def _scan(s: Sketch, update: str) -> None:
    """A recurrence without weights: element-wise work, one launch per step and operator."""
    last = s.draw.chance(0.4)
    s.line("state = torch.zeros_like(x[:, 0])")
    if not last:
        s.line("states = []")
    s.line("for step in x.unbind(dim=1):")
    s.line(f"    {update}")
    if last:
        s.set("state", cost=4)
        s.become("wide", s.shape[0], s.shape[2])
    else:
        s.line("    states.append(state)")
        s.set("torch.stack(states, dim=1)", cost=4)


def _cell(s: Sketch, cell: str) -> None:
    """A recurrent cell over time."""
    s.flops += 2.0 * s.numel * s.width.value * (6 if cell == "GRUCell" else 2)
    layer = s.layer("cell", f"nn.{cell}({{}}, {{}})", s.width, s.width)
    s.line("hidden = torch.zeros_like(x[:, 0])")
    s.line("for step in x.unbind(dim=1):")
    s.line(f"    hidden = {layer}(step, hidden)")
    s.set("hidden", cost=6)
    s.become("wide", s.shape[0], s.shape[2])


def _written_cell(s: Sketch) -> None:
    """The product with the input could be done for all steps at once."""
    act = s.draw.choice(("torch.tanh", "F.relu", "torch.sigmoid"))
    inner = s.layer("inner", "nn.Linear({}, {})", s.width, s.width, flops=4.0 * s.numel * s.width.value)
    outer = s.layer("outer", "nn.Linear({}, {}, bias=False)", s.width, s.width)
    s.line("hidden = torch.zeros_like(x[:, 0])")
    s.line("states = []")
    s.line("for step in x.unbind(dim=1):")
    s.line(f"    hidden = {act}({inner}(step) + {outer}(hidden))")
    s.line("    states.append(hidden)")
    s.set("torch.stack(states, dim=1)", cost=4)


_ITERATIONS = {
    "sinkhorn": (
        "x = torch.exp(x.clamp(max=3.0))",
        "x = x / (x.sum(dim=-1, keepdim=True) + 1e-6)",
        "x = x / (x.sum(dim=-2, keepdim=True) + 1e-6)",
    ),
    "diffusion": (None, "x = x + 0.2 * (x.roll(1, -1) + x.roll(-1, -1) - 2.0 * x)"),
    "oscillator": ("speed = torch.cos(x)", "x = x + 0.1 * speed", "speed = speed - 0.1 * torch.sin(x)"),
    "logistic": ("x = torch.sigmoid(x)", "x = 2.5 * x * (1.0 - x)"),
    "reaction": ("y = torch.tanh(x)", "x = x + 0.1 * (x - x**3 / 3.0 - y).clamp(-2.0, 2.0)", "y = y + 0.05 * (x - y)"),
    "newton-root": ("value = x * x + 1.0\nx = value", "x = 0.5 * (x + value / x)"),
    "fixed-point": ("start = x", "x = start + 0.5 * torch.tanh(x)"),
    "consensus": (None, "x = x + 0.3 * (x.mean(dim=-2, keepdim=True) - x)"),
    "whitening": (None, "x = x - x.mean(dim=-1, keepdim=True)", "x = x / (x.std(dim=-1, keepdim=True) + 0.1)"),
}


def _iteration(s: Sketch, name: str) -> None:
    before, *steps = _ITERATIONS[name]
    if before is not None:
        for line in before.splitlines():
            s.line(line)
    count = s.draw.choice((2, 3, 4, 6, 8))
    s.line(f"for _ in range({count}):")
    for step in steps:
        s.line(f"    {step}")
    s.bytes += 4 * s.numel * 2 * count * len(steps)


def _polynomial(s: Sketch) -> None:
    """By powers: Horner's rule needs half of the products, and one kernel."""
    factors = [s.draw.choice(("0.1", "0.2", "-0.3", "0.5", "-0.05")) for _ in range(s.draw.choice((3, 4, 5)))]
    s.line("t = torch.tanh(x)")
    powers = ["t", *(f"t**{power}" for power in range(2, len(factors) + 1))]
    terms = [f"{factor} * {power}" for factor, power in zip(factors, powers, strict=True)]
    s.set(" + ".join(terms).replace("+ -", "- "), cost=len(factors) * 2)


def _fourier(s: Sketch) -> None:
    count = s.draw.choice((2, 3, 4))
    s.set(" + ".join(f"torch.sin({n}.0 * {{x}}) / {n}.0" for n in range(1, count + 1)), cost=3 * count)


def _optimiser(s: Sketch) -> None:
    """A step of Adam on plain tensors."""
    gradient = s.input("gradient", s.shape)
    first = s.input("first", s.shape, "0.1 * torch.randn({shape})")
    second = s.input("second", s.shape, "torch.rand({shape})")
    s.line(f"{first} = 0.9 * {first} + 0.1 * {gradient}")
    s.line(f"{second} = 0.99 * {second} + 0.01 * {gradient} * {gradient}")
    s.set(f"{{x}} - 0.1 * {first} / ({second}.sqrt() + 1e-3) - 0.01 * {{x}}", cost=8)


def _quantised(s: Sketch) -> None:
    s.line("scale = x.abs().amax(dim=-1, keepdim=True) / 2.0 + 1e-6")
    s.set("torch.tanh({x} / scale) * scale + 0.1 * {x}", cost=5)


STAGES = (
    *(Stage(name, "recurrent", _TOKENS, partial(_scan, update=update), 2, 4) for name, update in _STEPS.items()),
    Stage("gru-cell", "recurrent", _TOKENS, partial(_cell, cell="GRUCell"), 2, 4),
    Stage("rnn-cell", "recurrent", _TOKENS, partial(_cell, cell="RNNCell"), 2, 4),
    Stage("written-cell", "recurrent", _TOKENS, _written_cell, 3, 5),
    *(Stage(name, "chain", _ANY, partial(_iteration, name=name), 3, 4) for name in _ITERATIONS),
    Stage("polynomial", "chain", _ANY | {"heads", "signal"}, _polynomial, 5, 3),
    Stage("fourier", "chain", _ANY | {"signal"}, _fourier, 4, 3),
    Stage("optimiser-step", "chain", _ANY, _optimiser, 4, 3),
    Stage("soft-limited", "chain", _ANY, _quantised, 3, 3),
)
