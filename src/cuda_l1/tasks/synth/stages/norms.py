"""Normalisations, softmaxes and what else looks at a whole row before it changes an element."""

from __future__ import annotations

from functools import partial

from cuda_l1.tasks.synth.sketch import Sketch
from cuda_l1.tasks.synth.stages.stage import DENSE, FLAT, Stage

_MAPS = frozenset({"signal", "image"})


def _layer_norm(s: Sketch) -> None:
    s.set(f"{s.layer('norm', 'nn.LayerNorm({})', s.width)}({{x}})", cost=2)


def _rms_norm(s: Sketch) -> None:
    weight = s.layer("weight", "nn.Parameter(1.0 + 0.1 * torch.randn({}))", s.width)
    s.set(f"{{x}} * torch.rsqrt({{x}}.pow(2).mean(dim=-1, keepdim=True) + 1e-6) * {weight}", cost=4)


def _standardise(s: Sketch) -> None:
    dim = s.channel
    s.line(f"mean = x.mean(dim={dim}, keepdim=True)")
    s.line(f"variance = x.var(dim={dim}, keepdim=True, unbiased=False)")
    s.set("({x} - mean) / torch.sqrt(variance + 1e-5)", cost=4)


def _group_norm(s: Sketch) -> None:
    s.set(f"{s.layer('norm', f'nn.GroupNorm({s.draw.choice((2, 4))}, {{}})', s.width)}({{x}})", cost=2)


def _batch_norm(s: Sketch) -> None:
    rank = {"signal": 1, "image": 2}.get(s.kind, 1)
    s.set(f"{s.layer('norm', f'nn.BatchNorm{rank}d({{}})', s.width)}({{x}})", cost=2)


def _instance_norm(s: Sketch) -> None:
    rank = {"signal": 1, "image": 2}[s.kind]
    s.set(f"{s.layer('norm', f'nn.InstanceNorm{rank}d({{}}, affine=True)', s.width)}({{x}})", cost=2)


_FORMULAS = {
    "softmax": "F.softmax({x}, dim=DIM)",
    "log-softmax": "F.log_softmax({x}, dim=DIM)",
    "sharp-softmax": "torch.softmax({x} / 0.5, dim=DIM)",
    "unit-length": "F.normalize({x}, dim=DIM)",
    "l1-normalised": "{x} / ({x}.abs().sum(dim=DIM, keepdim=True) + 1e-6)",
    "centred": "{x} - {x}.mean(dim=DIM, keepdim=True)",
    "max-scaled": "{x} / ({x}.abs().amax(dim=DIM, keepdim=True) + 1e-6)",
    "range-scaled": "({x} - {x}.amin(dim=DIM, keepdim=True)) / ({x}.amax(dim=DIM, keepdim=True) + 4.0)",
    "mean-gated": "{x} * torch.sigmoid({x}.mean(dim=DIM, keepdim=True))",
    "energy-scaled": "{x} / (1.0 + {x}.norm(dim=DIM, keepdim=True))",
    "softmax-gated": "{x} * F.softmax({x}, dim=DIM)",
    "running-sum": "torch.cumsum({x}, dim=DIM)",
    "running-mean": "torch.cumsum({x}, dim=DIM) / (1 + torch.arange({x}.shape[DIM], device={x}.device))",
    "log-mean-exp-shifted": "{x} - torch.logsumexp({x}, dim=DIM, keepdim=True)",
}


def _formula(s: Sketch, name: str) -> None:
    s.set(_FORMULAS[name].replace("DIM", str(s.channel)), cost=3)


def _moments(s: Sketch) -> None:
    """Adaptive instance normalisation: another tensor's statistics."""
    style = s.input("style", s.shape)
    dims = "-1" if s.kind == "signal" else "(2, 3)"
    for name, tensor in (("content", "x"), ("other", style)):
        s.line(f"{name}_mean = {tensor}.mean(dim={dims}, keepdim=True)")
        s.line(f"{name}_std = ({tensor}.var(dim={dims}, keepdim=True) + 1e-5).sqrt()")
    s.set("({x} - content_mean) / content_std * other_std + other_mean", cost=5)


def _excitation(s: Sketch) -> None:
    """Squeeze and excite: each channel weighted by what the mean over the positions says."""
    dims = "-1" if s.kind == "signal" else "(2, 3)"
    squeezed = s.width.over(4)
    down = s.layer("squeeze", "nn.Linear({}, {})", s.width, squeezed)
    up = s.layer("excite", "nn.Linear({}, {})", squeezed, s.width)
    s.line(f"scale = torch.sigmoid({up}(F.relu({down}(x.mean(dim={dims})))))")
    s.set("{x} * scale[:, :, None]" if s.kind == "signal" else "{x} * scale[:, :, None, None]", cost=2)


STAGES = (
    Stage("layer-norm", "norm", FLAT | {"heads"}, _layer_norm, 8),
    Stage("rms-norm", "norm", FLAT | {"heads"}, _rms_norm, 7, 2),
    Stage("standardise", "norm", DENSE, _standardise, 4, 2),
    Stage("group-norm", "norm", _MAPS, _group_norm, 10),
    Stage("batch-norm", "norm", _MAPS | {"wide"}, _batch_norm, 6),
    Stage("instance-norm", "norm", _MAPS, _instance_norm, 8),
    *(
        Stage(name, "norm", FLAT if name == "running-mean" else DENSE, partial(_formula, name=name), 2)
        for name in _FORMULAS
    ),
    Stage("adaptive-instance-norm", "norm", _MAPS, _moments, 4, 3),
    Stage("squeeze-excite", "norm", _MAPS, _excitation, 6, 3),
)
