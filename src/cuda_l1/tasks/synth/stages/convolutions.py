"""Convolutions, pools and changes of resolution."""

from __future__ import annotations

from functools import partial

from cuda_l1.tasks.synth.sketch import Dim, Sketch
from cuda_l1.tasks.synth.stages.stage import Stage

_IMAGE = frozenset({"image"})
_SIGNAL = frozenset({"signal"})
_BOTH = _IMAGE | _SIGNAL


def _rank(s: Sketch) -> int:
    return 1 if s.kind == "signal" else 2


def _same_size(s: Sketch, kernel: int, *, depthwise: bool = False, dilation: int = 1, out: Dim | None = None) -> str:
    """A convolution that keeps the positions; returns the layer."""
    out = out or s.width
    rank, padding = _rank(s), dilation * (kernel // 2)
    settings = f", padding={padding}" if padding else ""
    settings += f", dilation={dilation}" if dilation > 1 else ""
    settings += ", groups={}" if depthwise else ""
    per = 1 if depthwise else s.width.value
    flops = 2.0 * s.numel / s.width.value * out.value * per * kernel**rank
    dims = (s.width, out, s.width) if depthwise else (s.width, out)
    return s.layer("conv", f"nn.Conv{rank}d({{}}, {{}}, {kernel}{settings})", *dims, flops=flops)


def _conv(s: Sketch) -> None:
    out = s.size("channels") if s.draw.chance(0.7) else s.width
    s.set(f"{_same_size(s, s.draw.choice((1, 3, 3, 3, 5)), out=out)}({{x}})")
    s.become(s.kind, s.shape[0], out, *s.shape[2:])


def _depthwise(s: Sketch) -> None:
    s.set(f"{_same_size(s, s.draw.choice((3, 5, 7)), depthwise=True)}({{x}})")


def _separable(s: Sketch) -> None:
    depth = _same_size(s, 3, depthwise=True)
    s.set(f"{_same_size(s, 1)}({depth}({{x}}))", cost=2)


def _dilated(s: Sketch) -> None:
    s.set(f"{_same_size(s, 3, dilation=2)}({{x}})")


def _two_convolutions(s: Sketch) -> None:
    """Two of kernel 1 with nothing between: they are one."""
    first = _same_size(s, 1)
    s.set(f"{_same_size(s, 1)}({first}({{x}}))", cost=2)


def _parallel(s: Sketch) -> None:
    """Two convolutions of one tensor, added: one with a joined kernel would do."""
    first = _same_size(s, 1)
    s.set(f"{first}({{x}}) + {_same_size(s, 3)}({{x}})", cost=3)


def _normed(s: Sketch) -> None:
    """Convolution and batch norm in eval mode: the norm could be in the weights."""
    rank = _rank(s)
    norm = s.layer("norm", f"nn.BatchNorm{rank}d({{}}).eval()", s.width)
    s.set(f"{norm}({_same_size(s, 3)}({{x}}))", cost=2)


def _half(size: Dim) -> Dim:
    return Dim(f"({size.text} + 1) // 2", (size.value + 1) // 2)


def _strided(s: Sketch) -> None:
    rank = _rank(s)
    out = s.size("channels")
    flops = 2.0 * s.numel * out.value * 3**rank / 2**rank
    s.set(f"{s.layer('conv', f'nn.Conv{rank}d({{}}, {{}}, 3, stride=2, padding=1)', s.width, out, flops=flops)}({{x}})")
    s.become(s.kind, s.shape[0], out, *(_half(size) for size in s.shape[2:]))


def _transposed(s: Sketch) -> None:
    rank = _rank(s)
    out = s.width.over(2)
    flops = 2.0 * s.numel * out.value * 2**rank
    s.set(f"{s.layer('conv', f'nn.ConvTranspose{rank}d({{}}, {{}}, 2, stride=2)', s.width, out, flops=flops)}({{x}})")
    s.become(s.kind, s.shape[0], out, *(size.times(2) for size in s.shape[2:]))


def _pooled(s: Sketch, pool: str) -> None:
    rank = _rank(s)
    s.activate(f"F.{'max' if pool == 'Max' else 'avg'}_pool{rank}d({{x}}, 2)", f"nn.{pool}Pool{rank}d(2)")
    s.become(s.kind, *s.shape[:2], *(size.over(2) for size in s.shape[2:]))


def _smoothed(s: Sketch) -> None:
    rank = _rank(s)
    kernel = s.draw.choice((3, 5))
    pool = s.draw.choice(("Max", "Avg"))
    s.set(f"{s.layer('pool', f'nn.{pool}Pool{rank}d({kernel}, stride=1, padding={kernel // 2})')}({{x}})")


def _conv_then_pool(s: Sketch) -> None:
    """A convolution and the mean over all positions: most of it is not needed."""
    dims = "-1" if s.kind == "signal" else "(2, 3)"
    s.set(f"{_same_size(s, 3)}({{x}}).mean(dim={dims})")
    s.become("wide", *s.shape[:2])


def _upsampled(s: Sketch) -> None:
    s.set('F.interpolate({x}, scale_factor=2, mode="nearest")', cost=4)
    s.become(s.kind, *s.shape[:2], *(size.times(2) for size in s.shape[2:]))


def _shuffled(s: Sketch) -> None:
    s.set("{x}.unflatten(1, (2, -1)).transpose(1, 2).flatten(1, 2)")


def _pixels(s: Sketch) -> None:
    s.set("F.pixel_shuffle({x}, 2)")
    s.become("column", s.shape[0], s.width.over(4), *(size.times(2) for size in s.shape[2:]))


def _pooled_conv(s: Sketch) -> None:
    """A convolution of kernel 1 and an average pool: the pool can come first."""
    rank = _rank(s)
    s.set(f"F.avg_pool{rank}d({_same_size(s, 1)}({{x}}), 2)", cost=2)
    s.become(s.kind, *s.shape[:2], *(size.over(2) for size in s.shape[2:]))


STAGES = (
    Stage("conv", "conv", _BOTH, _conv, 14, 2),
    Stage("depthwise", "conv", _BOTH, _depthwise, 6, 2),
    Stage("separable", "conv", _BOTH, _separable, 6, 3),
    Stage("dilated", "conv", _BOTH, _dilated, 3, 2),
    Stage("two-pointwise-convs", "conv", _BOTH, _two_convolutions, 4, 2),
    Stage("parallel-convs", "conv", _BOTH, _parallel, 4, 3),
    Stage("frozen-norm-conv", "conv", _BOTH, _normed, 6, 2),
    Stage("strided", "conv", _BOTH, _strided, 6, 2),
    Stage("transposed", "conv", _BOTH, _transposed, 4, 2),
    Stage("conv-mean", "conv", _BOTH, _conv_then_pool, 4, 2),
    Stage("conv-pool", "conv", _BOTH, _pooled_conv, 4, 2),
    Stage("max-pool", "resample", _BOTH, partial(_pooled, pool="Max"), 5),
    Stage("avg-pool", "resample", _BOTH, partial(_pooled, pool="Avg"), 5),
    Stage("smoothed", "resample", _BOTH, _smoothed, 4),
    Stage("upsampled", "resample", _BOTH, _upsampled, 3),
    Stage("channel-shuffle", "layout", _BOTH, _shuffled, 4),
    Stage("pixel-shuffle", "layout", _IMAGE, _pixels, 3),
)
