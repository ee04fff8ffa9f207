"""Rules for element-wise operations. Every formula is the one PyTorch documents, so inf and nan come out the same."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.codegen.ir import FLOATS, Unsupported, Value
from cuda_l1.proposers.techniques.codegen.lowering import DTYPES, Lowering, dtype_of, rule
from cuda_l1.proposers.techniques.matching import argument, op_name, shape, val

if TYPE_CHECKING:
    from torch.fx import Node

UNARY = (
    "abs", "neg", "exp", "exp2", "expm1", "log", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "erf", "erfc",
    "atan", "asin", "acos", "sinh", "cosh", "floor", "ceil", "trunc", "round", "sign", "sigmoid", "reciprocal",
)  # fmt: skip


def float_only(node: Node) -> None:
    """Raise Unsupported unless the node is a floating-point tensor."""
    if dtype_of(node) not in FLOATS:
        raise Unsupported(f"{op_name(node)} on {dtype_of(node)}")


@rule(*(f"aten.{name}.default" for name in UNARY))
def unary(low: Lowering, node: Node) -> Value:
    name = op_name(node).split(".")[1]
    if name not in ("abs", "neg"):
        float_only(node)
    elif dtype_of(node) == "b8":
        raise Unsupported("arithmetic on bool")
    return low.b.point(name, low.operand(node, 0))


def _binary(low: Lowering, node: Node, op: str) -> Value:
    left, right = low.operand(node, 0), low.operand(node, 1)
    if dtype_of(node) == "b8":
        raise Unsupported("arithmetic on bool")
    return low.b.point(op, left, right)


@rule(
    "aten.add.Tensor", "aten.add.Scalar", "aten.sub.Tensor", "aten.sub.Scalar", "aten.rsub.Scalar", "aten.rsub.Tensor"
)
def add(low: Lowering, node: Node) -> Value:
    if dtype_of(node) == "b8":
        raise Unsupported("arithmetic on bool")
    left, right = low.operand(node, 0), low.operand(node, 1)
    kind = op_name(node).split(".")[1]
    if kind == "rsub":
        left, right = right, left
    alpha = argument(node, "alpha", 1)
    if alpha not in (None, 1):
        if kind == "rsub":
            raise Unsupported("rsub with alpha")
        right = low.b.point("mul", right, low.b.const(alpha, right.dtype))
    return low.b.point("add" if kind == "add" else "sub", left, right)


@rule("aten.mul.Tensor", "aten.mul.Scalar", "aten.minimum.default", "aten.maximum.default", "aten.max.other",
      "aten.min.other")  # fmt: skip
def binary(low: Lowering, node: Node) -> Value:
    name = op_name(node).split(".")[1]
    return _binary(low, node, {"max": "maximum", "min": "minimum"}.get(name, name))


@rule("aten.div.Tensor", "aten.div.Scalar", "aten.true_divide.Tensor", "aten.div.Tensor_mode", "aten.div.Scalar_mode")
def divide(low: Lowering, node: Node) -> Value:
    float_only(node)
    mode = argument(node, "rounding_mode")
    result = _binary(low, node, "div")
    if mode == "floor":
        raise Unsupported("floor division corrects for rounding")
    return low.b.point("trunc", result) if mode == "trunc" else result


@rule("aten.eq.Tensor", "aten.eq.Scalar", "aten.ne.Tensor", "aten.ne.Scalar", "aten.lt.Tensor", "aten.lt.Scalar",
      "aten.le.Tensor", "aten.le.Scalar", "aten.gt.Tensor", "aten.gt.Scalar", "aten.ge.Tensor",
      "aten.ge.Scalar")  # fmt: skip
def compare(low: Lowering, node: Node) -> Value:
    import torch

    sides: list[Any] = [value if (value := val(arg)) is not None else arg for arg in node.args[:2]]
    common = DTYPES.get(str(torch.result_type(*sides)))
    if common is None or common in ("b8", "i16", "i8", "u8"):
        raise Unsupported("a comparison of narrow types")
    left, right = (low.operand(node, index, common) for index in (0, 1))
    return low.b.point(op_name(node).split(".")[1], left, right)


@rule("aten.logical_and.default", "aten.logical_or.default", "aten.logical_xor.default", "aten.bitwise_and.Tensor",
      "aten.bitwise_or.Tensor", "aten.bitwise_xor.Tensor", "aten.__and__.Tensor", "aten.__or__.Tensor")  # fmt: skip
def logical(low: Lowering, node: Node) -> Value:
    name = op_name(node).split(".")[1]
    if dtype_of(node) != "b8":
        raise Unsupported("bits of integers")
    kind = next(kind for kind in ("and", "xor", "or") if kind in name)
    return low.b.point(kind, low.operand(node, 0, "b8"), low.operand(node, 1, "b8"))


@rule("aten.logical_not.default", "aten.bitwise_not.default")
def negate(low: Lowering, node: Node) -> Value:
    if dtype_of(node) != "b8":
        raise Unsupported("bits of integers")
    return low.b.point("not", low.operand(node, 0, "b8"))


@rule("aten.isnan.default")
def is_nan(low: Lowering, node: Node) -> Value:
    value = low.value(node.args[0])
    if value.dtype not in FLOATS:
        raise Unsupported("isnan of integers")
    return low.b.point("ne", value, value)


@rule("aten.isinf.default")
def is_inf(low: Lowering, node: Node) -> Value:
    value = low.value(node.args[0])
    if value.dtype not in FLOATS:
        raise Unsupported("isinf of integers")
    return low.b.point("eq", low.b.point("abs", value), math.inf)


@rule("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar")
def where(low: Lowering, node: Node) -> Value:
    return low.b.point(
        "where", low.operand(node, 0, "b8"), low.operand(node, 1), low.operand(node, 2), dtype=dtype_of(node)
    )


@rule("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(low: Lowering, node: Node) -> Value:
    return low.b.point(
        "where", low.operand(node, 1, "b8"), low.operand(node, 2), low.operand(node, 0), dtype=dtype_of(node)
    )


@rule("aten.clamp.default", "aten.clamp_min.default", "aten.clamp_max.default", "aten.hardtanh.default",
      "aten.relu.default", "aten.relu6.default", "aten.clamp.Tensor", "aten.clamp_min.Tensor",
      "aten.clamp_max.Tensor")  # fmt: skip
def clamp(low: Lowering, node: Node) -> Value:
    """nan passes through; the upper bound wins where they cross, as in PyTorch."""
    name = op_name(node).split(".")[1]
    lowest = {"relu": 0, "relu6": 0}.get(name, argument(node, "min"))
    highest = 6 if name == "relu6" else argument(node, "max")
    if name == "hardtanh":
        lowest, highest = argument(node, "min_val"), argument(node, "max_val")
    value = low.operand(node, 0)
    if lowest is not None:
        value = low.b.point("maximum", value, low.b.cast(low.value(lowest, value.dtype), value.dtype))
    if highest is not None:
        value = low.b.point("minimum", value, low.b.cast(low.value(highest, value.dtype), value.dtype))
    return value


@rule("aten.to.dtype", "aten._to_copy.default", "aten.type_as.default", "aten.to.dtype_layout", "aten.to.device",
      "aten.to.other")  # fmt: skip
def convert(low: Lowering, node: Node) -> Value:
    return low.b.cast(low.value(node.args[0]), dtype_of(node))


@rule("aten.dropout.default", "aten.feature_dropout.default", "aten.alpha_dropout.default", "aten.clone.default",
      "aten.contiguous.default", "aten.alias.default", "aten.detach.default", "aten.detach_.default",
      "aten.lift_fresh_copy.default")  # fmt: skip
def identity(low: Lowering, node: Node) -> Value:
    """Dropout arrives here only when it is switched off."""
    return low.value(node.args[0])


@rule("aten.zeros_like.default", "aten.ones_like.default", "aten.full_like.default", "aten.zeros.default",
      "aten.ones.default", "aten.full.default", "aten.scalar_tensor.default", "aten.new_zeros.default",
      "aten.new_ones.default", "aten.new_full.default")  # fmt: skip
def constant(low: Lowering, node: Node) -> Value:
    name = op_name(node).split(".")[1]
    value = 0 if "zeros" in name else 1 if "ones" in name else argument(node, "fill_value", argument(node, "s"))
    if not isinstance(value, (bool, int, float)):
        raise Unsupported("a fill value that is computed")
    filled = low.b.cast(low.b.const(value, "f64" if isinstance(value, float) else "i64"), dtype_of(node))
    return low.b.expand(filled, shape(node))
