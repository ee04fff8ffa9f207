"""Rules for functions of one floating-point array, as PyTorch documents them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from cuda_l1.proposers.techniques.codegen.ir import Value
from cuda_l1.proposers.techniques.codegen.lower_pointwise import float_only
from cuda_l1.proposers.techniques.codegen.lowering import Lowering, rule
from cuda_l1.proposers.techniques.matching import argument, op_name

if TYPE_CHECKING:
    from torch.fx import Node


def _activation(*names: str) -> Callable[[Callable[[Lowering, Node, Value], Value]], object]:
    """Register a rule for functions of one floating-point argument."""

    def register(formula: Callable[[Lowering, Node, Value], Value]) -> object:
        def lowered(low: Lowering, node: Node) -> Value:
            float_only(node)
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
