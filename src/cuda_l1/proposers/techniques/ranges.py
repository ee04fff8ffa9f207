"""Interval arithmetic over a graph: bounds on every element of every value, assuming finite arguments and weights.

A bound holds for exact arithmetic and, because every rule here is monotone and rounding is too, in floating point. What
holds for infinities and NaN is not asked: a forward that is finite only where bounds hold is judged on finite values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.identities import unchanged
from cuda_l1.proposers.techniques.matching import (
    FROZEN,
    MAY_RETURN_ARGUMENT,
    argument,
    is_random,
    is_view,
    op_name,
    operands,
    shape,
    val,
)
from cuda_l1.proposers.techniques.pattern import is_number

if TYPE_CHECKING:
    from torch.fx import Graph, Node

Range = tuple[float, float]
ANY: Range = (-math.inf, math.inf)

FIXED: dict[str, Range] = {
    "sigmoid.default": (0.0, 1.0), "tanh.default": (-1.0, 1.0), "softmax.int": (0.0, 1.0),
    "log_softmax.int": (-math.inf, 0.0), "exp.default": (0.0, math.inf), "abs.default": (0.0, math.inf),
    "square.default": (0.0, math.inf), "sqrt.default": (0.0, math.inf), "rsqrt.default": (0.0, math.inf),
    "softplus.default": (0.0, math.inf), "hardsigmoid.default": (0.0, 1.0), "relu6.default": (0.0, 6.0),
    "sin.default": (-1.0, 1.0), "cos.default": (-1.0, 1.0), "erf.default": (-1.0, 1.0),
    "log_sigmoid.default": (-math.inf, 0.0), "linalg_vector_norm.default": (0.0, math.inf),
}  # fmt: skip
"""Ranges whatever the argument."""

MONOTONE: dict[str, Callable[[float], float]] = {
    "exp.default": lambda x: math.exp(min(x, 700.0)) if x < 700 else math.inf,
    "tanh.default": math.tanh,
    "sigmoid.default": lambda x: 1 / (1 + math.exp(-x)) if x > -700 else 0.0,
    "sqrt.default": lambda x: math.sqrt(max(x, 0.0)),
    "sign.default": lambda x: float((x > 0) - (x < 0)),
    "floor.default": lambda x: float(math.floor(x)) if math.isfinite(x) else x,
    "ceil.default": lambda x: float(math.ceil(x)) if math.isfinite(x) else x,
}
"""Non-decreasing functions of one argument."""

ZERO_AT_ZERO = frozenset({"gelu.default", "silu.default", "mish.default", "elu.default", "sin.default", "tanh.default"})
ZERO_AT_ZERO |= {"leaky_relu.default", "hardswish.default", "erf.default", "expm1.default"}

KEEPS_ELEMENTS = frozenset(
    {"max_pool1d.default", "max_pool2d.default", "max_pool3d.default", "amax.default", "amin.default", "max.default",
     "min.default", "mean.dim", "mean.default", "flip.default", "repeat.default", "tile.default", "roll.default",
     "clone.default", "adaptive_avg_pool1d.default", "adaptive_avg_pool2d.default",
     "adaptive_avg_pool3d.default", "adaptive_max_pool2d.default", "index_select.default", "repeat_interleave.self_int"}
)  # fmt: skip
"""Every element of the result lies between elements of the first argument."""


def ranges(graph: Graph) -> dict[Node, Range]:
    """Bounds (low, high) of every floating tensor of the graph."""
    found: dict[Node, Range] = {}
    for node in graph.nodes:
        found[node] = _range(node, found)
    return found


def _range(node: Node, found: dict[Node, Range]) -> Range:
    name = op_name(node).removeprefix("aten.")
    value = val(node)
    if value is None or not value.dtype.is_floating_point or node.meta.get(FROZEN) or not node.args:
        return ANY
    inner = _of(node.args[0], found)
    low, high = _by_rule(node, name, inner, found)
    fixed = FIXED.get(name, ANY)
    return (max(low, fixed[0]), min(high, fixed[1]))


def _of(value: Any, found: dict[Node, Range]) -> Range:
    if is_number(value):
        return (float(value), float(value))
    return found.get(value, ANY) if hasattr(value, "op") else ANY


def _by_rule(node: Node, name: str, inner: Range, found: dict[Node, Range]) -> Range:
    low, high = inner
    if name in ("add.Tensor", "sub.Tensor", "mul.Tensor", "maximum.default", "minimum.default"):
        return _binary(node, name, inner, _of(operands(node)[1], found))
    if name == "rsub.Scalar" and argument(node, "alpha") == 1:
        other = float(operands(node)[1])
        return (other - high, other - low)
    if name == "neg.default":
        return (-high, -low)
    if name == "div.Tensor" and is_number(operands(node)[1]) and operands(node)[1] != 0:
        return _products(inner, (1 / operands(node)[1],) * 2)
    if name in ("clamp.default", "clamp_min.default", "clamp_max.default", "relu.default", "hardtanh.default"):
        return _clamped(inner, bounds(node))
    if name in MONOTONE:
        return (MONOTONE[name](low), MONOTONE[name](high))
    if name in ZERO_AT_ZERO and inner == (0.0, 0.0):
        return inner
    if name == "softmax.int" and shape(node)[argument(node, "dim")] == 1:
        return (1.0, 1.0)
    if name == "log_softmax.int" and shape(node)[argument(node, "dim")] == 1:
        return (0.0, 0.0)
    if name in ("sum.dim_IntList", "sum.default", "cumsum.default") and inner == (0.0, 0.0):
        return inner
    if name in KEEPS_ELEMENTS or (is_view(node) and op_name(node) not in MAY_RETURN_ARGUMENT and name != "view.dtype"):
        return inner
    if name in ("dropout.default", "feature_dropout.default") and (inner == (0.0, 0.0) or not is_random(node)):
        return inner
    return ANY


def bounds(node: Node) -> Range:
    """The bounds that a clamping call enforces."""
    name = op_name(node).removeprefix("aten.")
    if name == "relu.default":
        return (0.0, math.inf)
    if name == "hardtanh.default":
        return (float(argument(node, "min_val")), float(argument(node, "max_val")))
    low, high = (argument(node, "min"), argument(node, "max"))
    return (-math.inf if low is None else float(low), math.inf if high is None else float(high))


def _clamped(inner: Range, limits: Range) -> Range:
    """As `clamp` does: the upper limit wins where the limits cross."""
    low, high = limits
    return (min(max(inner[0], low), high), min(max(inner[1], low), high))


def _binary(node: Node, name: str, left: Range, right: Range) -> Range:
    one, two = (_origin(operand) for operand in operands(node)[:2])
    if name == "sub.Tensor" and one is two and argument(node, "alpha") == 1:
        return (0.0, 0.0)
    if name == "mul.Tensor":
        return (max(0.0, _products(left, right)[0]), math.inf) if one is two else _products(left, right)
    if name == "maximum.default":
        return (max(left[0], right[0]), max(left[1], right[1]))
    if name == "minimum.default":
        return (min(left[0], right[0]), min(left[1], right[1]))
    if argument(node, "alpha") != 1:
        return ANY
    if name == "sub.Tensor":
        right = (-right[1], -right[0])
    return (left[0] + right[0], left[1] + right[1])


def _origin(value: Any) -> Any:
    """The value that calls which change nothing lead back to."""
    while getattr(value, "op", "") == "call_function" and not value.meta.get(FROZEN):
        same = unchanged(value)
        if same is None or shape(same) != shape(value):
            break
        value = same
    return value


def _products(left: Range, right: Range) -> Range:
    """Bounds of a product; zero times an unbounded but finite value is zero."""
    ends = [0.0 if 0.0 in (x, y) else x * y for x in left for y in right]
    return (min(ends), max(ends))
