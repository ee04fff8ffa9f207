"""Rules for reductions and what is built from them: norms, softmax, running totals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cuda_l1.proposers.techniques.codegen.ir import FLOATS, Unsupported, Value
from cuda_l1.proposers.techniques.codegen.lowering import Lowering, Result, dims_of, dtype_of, rule
from cuda_l1.proposers.techniques.matching import argument, op_name, shape

if TYPE_CHECKING:
    from torch.fx import Node


def _count(value: Value, dims: Sequence[int]) -> int:
    return math.prod(value.shape[dim] for dim in dims)


def float_operand(low: Lowering, node: Node) -> Value:
    """The argument of a reduction, in the result's dtype; floating point only, and not empty."""
    if dtype_of(node) not in FLOATS:
        raise Unsupported(f"{op_name(node)} of {dtype_of(node)}")
    value = low.operand(node, 0)
    if 0 in value.shape:
        raise Unsupported("an empty reduction")
    return value


def mean_of(low: Lowering, value: Value, dims: Sequence[int]) -> Value:
    """The mean over `dims`, kept with size 1."""
    return low.b.point("mul", low.b.reduce("sum", value, dims), 1.0 / _count(value, dims))


def deviations(low: Lowering, value: Value, dims: Sequence[int]) -> tuple[Value, Value]:
    """Mean and sum of squared deviations over `dims`, each kept with size 1."""
    mean = mean_of(low, value, dims)
    centred = low.b.point("sub", value, mean)
    return mean, low.b.reduce("sum", low.b.point("mul", centred, centred), dims)


@rule("aten.sum.default", "aten.sum.dim_IntList", "aten.mean.default", "aten.mean.dim", "aten.amax.default",
      "aten.amin.default", "aten.max.default", "aten.min.default")  # fmt: skip
def reduction(low: Lowering, node: Node) -> Value:
    value = float_operand(low, node)
    dims = dims_of(argument(node, "dim"), len(value.shape))
    name = op_name(node).split(".")[1]
    kind = {"amax": "max", "amin": "min"}.get(name, name)
    reduced = mean_of(low, value, dims) if kind == "mean" else low.b.reduce(kind, value, dims)
    return low.b.reshape(reduced, shape(node))


@rule("aten.max.dim", "aten.min.dim")
def extreme(low: Lowering, node: Node) -> Result:
    """Values only; a region whose indices are read is refused when they are asked for."""
    value = low.value(node.args[0])
    if value.dtype not in FLOATS or 0 in value.shape:
        raise Unsupported("extremes of integers")
    dims = dims_of(argument(node, "dim"), len(value.shape))
    reduced = low.b.reduce(op_name(node).split(".")[1], value, dims)
    sizes = tuple(int(size) for size in node.meta["val"][0].shape)
    return low.b.reshape(reduced, sizes), None


@rule("aten.var.dim", "aten.var.default", "aten.var.correction", "aten.std.dim", "aten.std.default",
      "aten.std.correction", heavy=True)  # fmt: skip
def variance(low: Lowering, node: Node) -> Value:
    value = float_operand(low, node)
    dims = dims_of(argument(node, "dim"), len(value.shape))
    correction = argument(node, "correction", None)
    correction = int(argument(node, "unbiased", True)) if correction is None else correction
    freedom = _count(value, dims) - correction
    if freedom <= 0:
        raise Unsupported("no degrees of freedom")
    _, squares = deviations(low, value, dims)
    result = low.b.point("mul", squares, 1.0 / freedom)
    if op_name(node).startswith("aten.std"):
        result = low.b.point("sqrt", result)
    return low.b.reshape(result, shape(node))


@rule("aten.linalg_vector_norm.default", "aten.norm.Scalar", "aten.norm.ScalarOpt_dim")
def vector_norm(low: Lowering, node: Node) -> Value:
    b, value = low.b, float_operand(low, node)
    order = argument(node, "ord", argument(node, "p", 2))
    dims = dims_of(argument(node, "dim"), len(value.shape))
    if order in (2, 2.0, None):
        result = b.point("sqrt", b.reduce("sum", b.point("mul", value, value), dims))
    elif order in (1, 1.0):
        result = b.reduce("sum", b.point("abs", value), dims)
    elif order in (math.inf, -math.inf):
        result = b.reduce("max" if order > 0 else "min", b.point("abs", value), dims)
    else:
        raise Unsupported(f"norm of order {order}")
    return b.reshape(result, shape(node))


def exponentials(low: Lowering, value: Value, dim: int) -> tuple[Value, Value]:
    """(value - its maximum, sum of exponentials of that) along `dim`."""
    shifted = low.b.point("sub", value, low.b.reduce("max", value, (dim,)))
    return shifted, low.b.reduce("sum", low.b.point("exp", shifted), (dim,))


@rule("aten.softmax.int", "aten._softmax.default", "aten.log_softmax.int", "aten._log_softmax.default", heavy=True)
def softmax(low: Lowering, node: Node) -> Value:
    value = float_operand(low, node)
    if not value.shape:
        raise Unsupported("softmax of a scalar")
    dim = int(argument(node, "dim")) % len(value.shape)
    if value.shape[dim] == 1:
        raise Unsupported("softmax over one element")
    shifted, total = exponentials(low, value, dim)
    if "log_softmax" in op_name(node):
        return low.b.point("sub", shifted, low.b.point("log", total))
    return low.b.point("mul", low.b.point("exp", shifted), low.b.point("reciprocal", total))


@rule("aten.logsumexp.default", heavy=True)
def logsumexp(low: Lowering, node: Node) -> Value:
    """An infinite maximum is taken out of the difference, as PyTorch does."""
    b, value = low.b, float_operand(low, node)
    dims = dims_of(argument(node, "dim"), len(value.shape))
    peak = b.reduce("max", value, dims)
    infinite = b.point("eq", b.point("abs", peak), math.inf)
    safe = b.point("where", infinite, b.const(0.0, value.dtype), peak, dtype=value.dtype)
    total = b.reduce("sum", b.point("exp", b.point("sub", value, safe)), dims)
    return b.reshape(b.point("add", b.point("log", total), safe), shape(node))


def _affine(low: Lowering, value: Value, weight: Value | None, bias: Value | None) -> Value:
    if weight is not None:
        value = low.b.point("mul", value, weight)
    return value if bias is None else low.b.point("add", value, bias)


def _optional(low: Lowering, node: Node, name: str, dtype: str) -> Value | None:
    return None if argument(node, name) is None else low.operand(node, name, dtype)


def standardised(low: Lowering, value: Value, dims: Sequence[int], eps: float) -> Value:
    """(value - mean) / sqrt(variance + eps) over `dims`."""
    b = low.b
    mean, squares = deviations(low, value, dims)
    spread = b.point("add", b.point("mul", squares, 1.0 / _count(value, dims)), eps)
    return b.point("mul", b.point("sub", value, mean), b.point("rsqrt", spread))


@rule("aten.layer_norm.default", heavy=True)
def layer_norm(low: Lowering, node: Node) -> Value:
    value = float_operand(low, node)
    rank = len(value.shape)
    dims = range(rank - len(argument(node, "normalized_shape")), rank)
    normal = standardised(low, value, dims, float(argument(node, "eps")))
    weight, bias = (_optional(low, node, name, value.dtype) for name in ("weight", "bias"))
    return _affine(low, normal, weight, bias)


@rule("aten.rms_norm.default", heavy=True)
def rms_norm(low: Lowering, node: Node) -> Value:
    import torch

    b, value = low.b, float_operand(low, node)
    rank = len(value.shape)
    dims = range(rank - len(argument(node, "normalized_shape")), rank)
    eps = argument(node, "eps")
    if eps is None:  # half precision takes float's: PyTorch computes the norm in its accumulation type
        eps = torch.finfo(torch.float64 if value.dtype == "f64" else torch.float32).eps
    mean = mean_of(low, b.point("mul", value, value), dims)
    normal = b.point("mul", value, b.point("rsqrt", b.point("add", mean, float(eps))))
    return _affine(low, normal, _optional(low, node, "weight", value.dtype), None)


@rule("aten.group_norm.default", heavy=True)
def group_norm(low: Lowering, node: Node) -> Value:
    value, groups = float_operand(low, node), int(argument(node, "num_groups"))
    batch, channels, *rest = value.shape
    split = low.b.reshape(value, (batch, groups, channels // groups, *rest))
    normal = standardised(low, split, range(2, len(split.shape)), float(argument(node, "eps")))
    return _per_channel(low, node, normal, (groups, channels // groups), value.shape)


def _per_channel(low: Lowering, node: Node, value: Value, channels: tuple[int, ...], sizes: tuple[int, ...]) -> Value:
    """Scale and shift by (C,) vectors; `channels` is how C is laid out from dimension 1 of `value`."""
    inner = (1,) * (len(value.shape) - 1 - len(channels))
    parts = [_optional(low, node, name, value.dtype) for name in ("weight", "bias")]
    weight, bias = (None if part is None else low.b.reshape(part, channels + inner) for part in parts)
    return low.b.reshape(_affine(low, value, weight, bias), sizes)


@rule("aten.instance_norm.default", heavy=True)
def instance_norm(low: Lowering, node: Node) -> Value:
    value = float_operand(low, node)
    if not argument(node, "use_input_stats") or argument(node, "running_mean") is not None:
        raise Unsupported("instance norm with running statistics")
    normal = standardised(low, value, range(2, len(value.shape)), float(argument(node, "eps")))
    return _per_channel(low, node, normal, value.shape[1:2], value.shape)


@rule("aten.batch_norm.default")
def batch_norm(low: Lowering, node: Node) -> Value:
    b, value, eps = low.b, float_operand(low, node), float(argument(node, "eps"))
    channels = value.shape[1]
    inner = (channels, *(1,) * (len(value.shape) - 2))
    dtype = "f32" if value.dtype in ("bf16", "f16") else value.dtype
    if argument(node, "training"):
        if argument(node, "running_mean") is not None:
            raise Unsupported("batch norm that updates its statistics")
        normal = standardised(low, value, [dim for dim in range(len(value.shape)) if dim != 1], eps)
    else:
        mean, var = (b.reshape(low.operand(node, name, dtype), inner) for name in ("running_mean", "running_var"))
        scale = b.point("rsqrt", b.point("add", var, eps))
        normal = b.point("mul", b.point("sub", b.cast(value, dtype), mean), scale)
    return b.cast(_per_channel(low, node, normal, (channels,), value.shape), value.dtype)


@rule("aten.cumsum.default", heavy=True)
def cumsum(low: Lowering, node: Node) -> Value:
    value = float_operand(low, node)
    if not value.shape:
        raise Unsupported("cumsum of a scalar")
    dim = int(argument(node, "dim")) % len(value.shape)
    if value.shape[dim] == 1:
        return value
    return low.b.make("scan", (value,), value.shape, value.dtype, dims=(dim,))


@rule("aten.adaptive_avg_pool1d.default", "aten.adaptive_avg_pool2d.default", "aten.adaptive_avg_pool3d.default")
def global_average(low: Lowering, node: Node) -> Value:
    """Pooling to a single element is a mean; other sizes stay with PyTorch."""
    value = float_operand(low, node)
    sizes = argument(node, "output_size")
    if any(size != 1 for size in sizes):
        raise Unsupported("pooling to several elements")
    return low.b.reshape(mean_of(low, value, range(len(value.shape) - len(sizes), len(value.shape))), shape(node))
