"""Rules for element-wise operations. Every formula is the one PyTorch documents, so inf and nan come out the same."""

from __future__ import annotations

import math
from collections.abc import Callable
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


def _float_only(low: Lowering, node: Node) -> None:
    if dtype_of(node) not in FLOATS:
        raise Unsupported(f"{op_name(node)} on {dtype_of(node)}")


@rule(*(f"aten.{name}.default" for name in UNARY))
def unary(low: Lowering, node: Node) -> Value:
    name = op_name(node).split(".")[1]
    if name not in ("abs", "neg"):
        _float_only(low, node)
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
        scaled = low.b.const(alpha, right.dtype)
        if kind == "rsub":
            left = low.b.point("mul", left, scaled)
            raise Unsupported("rsub with alpha")
        right = low.b.point("mul", right, scaled)
    return low.b.point("add" if kind == "add" else "sub", left, right)


@rule("aten.mul.Tensor", "aten.mul.Scalar", "aten.minimum.default", "aten.maximum.default", "aten.max.other",
      "aten.min.other")  # fmt: skip
def binary(low: Lowering, node: Node) -> Value:
    name = op_name(node).split(".")[1]
    return _binary(low, node, {"max": "maximum", "min": "minimum"}.get(name, name))


@rule("aten.div.Tensor", "aten.div.Scalar", "aten.true_divide.Tensor", "aten.div.Tensor_mode", "aten.div.Scalar_mode")
def divide(low: Lowering, node: Node) -> Value:
    _float_only(low, node)
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
    lowest = {"relu": 0, "relu6": 0}.get(name, _bound(node, "min"))
    highest = 6 if name == "relu6" else _bound(node, "max")
    if name == "hardtanh":
        lowest, highest = argument(node, "min_val"), argument(node, "max_val")
    value = low.operand(node, 0)
    if lowest is not None:
        value = low.b.point("maximum", value, low.b.cast(low.value(lowest, value.dtype), value.dtype))
    if highest is not None:
        value = low.b.point("minimum", value, low.b.cast(low.value(highest, value.dtype), value.dtype))
    return value


def _bound(node: Node, name: str) -> object:
    return argument(node, name)


def _activation(*names: str) -> Callable[[Callable[[Lowering, Node, Value], Value]], object]:
    """Register a rule for functions of one floating-point argument."""

    def register(formula: Callable[[Lowering, Node, Value], Value]) -> object:
        def lowered(low: Lowering, node: Node) -> Value:
            _float_only(low, node)
            return formula(low, node, low.operand(node, 0))

        return rule(*names)(lowered)

    return register


@_activation("aten.silu.default")
def silu(low: Lowering, node: Node, x: Value) -> Value:
    return low.b.point("div", x, low.b.point("add", low.b.point("exp", low.b.point("neg", x)), 1))


@_activation("aten.gelu.default")
def gelu(low: Lowering, node: Node, x: Value) -> Value:
    b = low.b
    if argument(node, "approximate") == "tanh":
        cubic = b.point("mul", b.point("mul", b.point("mul", x, x), x), 0.044715)
        inner = b.point("mul", b.point("add", x, cubic), math.sqrt(2 / math.pi))
        bell = b.point("tanh", inner)
    else:
        bell = b.point("erf", b.point("mul", x, math.sqrt(0.5)))
    return b.point("mul", b.point("mul", x, 0.5), b.point("add", bell, 1))


@_activation("aten.square.default")
def square(low: Lowering, node: Node, x: Value) -> Value:
    return low.b.point("mul", x, x)


@_activation("aten.leaky_relu.default")
def leaky_relu(low: Lowering, node: Node, x: Value) -> Value:
    slope = low.b.point("mul", x, argument(node, "negative_slope"))
    return low.b.point("where", low.b.point("gt", x, 0), x, slope, dtype=x.dtype)


@_activation("aten.prelu.default")
def prelu(low: Lowering, node: Node, x: Value) -> Value:
    weight = low.operand(node, 1)
    if weight.shape and weight.shape[0] > 1:
        weight = low.b.reshape(weight, tuple(weight.shape[0] if dim == 1 else 1 for dim in range(len(x.shape))))
    elif weight.shape:
        weight = low.b.reshape(weight, (1,) * len(x.shape))
    return low.b.point("where", low.b.point("gt", x, 0), x, low.b.point("mul", x, weight), dtype=x.dtype)


@_activation("aten.elu.default", "aten.celu.default", "aten.selu.default")
def elu(low: Lowering, node: Node, x: Value) -> Value:
    name, b = op_name(node), low.b
    alpha, scale, inner = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1.0
    if name.startswith("aten.elu"):
        alpha, scale, inner = (float(argument(node, key)) for key in ("alpha", "scale", "input_scale"))
    elif name.startswith("aten.celu"):
        alpha, scale = float(argument(node, "alpha")), 1.0
        inner = 1 / alpha
    low_side = b.point("mul", b.point("expm1", b.point("mul", x, inner) if inner != 1 else x), alpha * scale)
    high_side = b.point("mul", x, scale) if scale != 1 else x
    return b.point("where", b.point("gt", x, 0), high_side, low_side, dtype=x.dtype)


@_activation("aten.softplus.default")
def softplus(low: Lowering, node: Node, x: Value) -> Value:
    b, beta, threshold = low.b, float(argument(node, "beta")), float(argument(node, "threshold"))
    scaled = b.point("mul", x, beta) if beta != 1 else x
    soft = b.point("log1p", b.point("exp", scaled))
    soft = b.point("div", soft, beta) if beta != 1 else soft
    return b.point("where", b.point("gt", scaled, threshold), x, soft, dtype=x.dtype)


@_activation("aten.mish.default")
def mish(low: Lowering, node: Node, x: Value) -> Value:
    soft = low.b.point("log1p", low.b.point("exp", x))
    return low.b.point("mul", x, low.b.point("tanh", soft))


@_activation("aten.log_sigmoid.default")
def log_sigmoid(low: Lowering, node: Node, x: Value) -> Value:
    b = low.b
    tail = b.point("log1p", b.point("exp", b.point("neg", b.point("abs", x))))
    return b.point("sub", b.point("minimum", x, 0), tail)


def _hard(low: Lowering, x: Value) -> Value:
    shifted = low.b.point("add", x, 3)
    return low.b.point("minimum", low.b.point("maximum", shifted, 0), 6)


@_activation("aten.hardswish.default")
def hardswish(low: Lowering, node: Node, x: Value) -> Value:
    return low.b.point("div", low.b.point("mul", x, _hard(low, x)), 6)


@_activation("aten.hardsigmoid.default")
def hardsigmoid(low: Lowering, node: Node, x: Value) -> Value:
    return low.b.point("div", _hard(low, x), 6)


@_activation("aten.threshold.default")
def threshold(low: Lowering, node: Node, x: Value) -> Value:
    b = low.b
    below = b.point("le", x, argument(node, "threshold"))
    return b.point("where", below, b.const(argument(node, "value"), x.dtype), x, dtype=x.dtype)


@_activation("aten.softshrink.default", "aten.hardshrink.default")
def shrink(low: Lowering, node: Node, x: Value) -> Value:
    b, edge = low.b, float(argument(node, "lambd"))
    zero = b.point("mul", x, 0)  # keeps nan, as PyTorch does
    if op_name(node).startswith("aten.hardshrink"):
        inside = b.point("le", b.point("abs", x), edge)
        return b.point("where", inside, b.const(0.0, x.dtype), x, dtype=x.dtype)
    upper = b.point("where", b.point("gt", x, edge), b.point("sub", x, edge), zero, dtype=x.dtype)
    return b.point("where", b.point("lt", x, -edge), b.point("add", x, edge), upper, dtype=x.dtype)


@_activation("aten.log2.default", "aten.log10.default")
def log_base(low: Lowering, node: Node, x: Value) -> Value:
    base = 2 if op_name(node).startswith("aten.log2") else 10
    return low.b.point("mul", low.b.point("log", x), 1 / math.log(base))


@_activation("aten.pow.Tensor_Scalar")
def power(low: Lowering, node: Node, x: Value) -> Value:
    b, exponent = low.b, float(argument(node, "exponent"))
    if exponent in (2.0, 3.0, 4.0):
        squared = b.point("mul", x, x)
        return {2.0: squared, 3.0: b.point("mul", squared, x), 4.0: b.point("mul", squared, squared)}[exponent]
    if exponent in (0.5, -0.5, -1.0, 1.0):
        if exponent == 1.0:
            return x
        return b.point({0.5: "sqrt", -0.5: "rsqrt", -1.0: "reciprocal"}[exponent], x)
    return b.point("pow", x, exponent)


@_activation("aten.pow.Tensor_Tensor", "aten.pow.Scalar")
def general_power(low: Lowering, node: Node, x: Value) -> Value:
    return low.b.point("pow", x, low.operand(node, 1))


@_activation("aten.lerp.Scalar", "aten.lerp.Tensor")
def lerp(low: Lowering, node: Node, x: Value) -> Value:
    b, end, weight = low.b, low.operand(node, 1), low.operand(node, 2)
    step = b.point("sub", end, x)
    near = b.point("add", x, b.point("mul", weight, step))
    far = b.point("sub", end, b.point("mul", step, b.point("sub", b.const(1.0, x.dtype), weight)))
    return b.point("where", b.point("lt", b.point("abs", weight), 0.5), near, far, dtype=x.dtype)


@_activation("aten.addcmul.default", "aten.addcdiv.default")
def add_product(low: Lowering, node: Node, x: Value) -> Value:
    b, factor = low.b, float(argument(node, "value", 1))
    op = "mul" if "addcmul" in op_name(node) else "div"
    term = b.point(op, low.operand(node, 1), low.operand(node, 2))
    return b.point("add", x, b.point("mul", term, factor) if factor != 1 else term)


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
