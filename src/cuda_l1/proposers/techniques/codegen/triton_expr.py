"""Element-wise operations as Triton expressions, single precision as exact as PyTorch's own kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cuda_l1.proposers.techniques.codegen.ir import COMPARISONS, Unsupported, Value

TYPES = {"f32": "tl.float32", "f64": "tl.float64", "i32": "tl.int32", "i64": "tl.int64", "b8": "tl.int1",
         "bf16": "tl.bfloat16", "f16": "tl.float16", "i16": "tl.int16", "i8": "tl.int8", "u8": "tl.uint8"}  # fmt: skip

_INFIX = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_LIBRARY = {name: name for name in ("exp", "exp2", "expm1", "log", "log1p", "rsqrt", "sin", "cos", "tan", "tanh",
                                    "erf", "erfc", "atan", "asin", "acos", "sinh", "cosh", "floor", "ceil", "trunc",
                                    "pow")} | {"round": "rint"}  # fmt: skip
_HELPERS = {"maximum": "larger", "minimum": "smaller", "sign": "sign_of", "sigmoid": "sigmoid"}


def literal(value: float | int | bool, compute: str) -> str:
    """A number as a tile of one element, so that its type never depends on what stands beside it."""
    if compute == "b8":
        text = str(bool(value))
    elif compute in ("i32", "i64"):
        text = str(int(value))
    else:
        number = float(value)
        text = repr(number) if math.isfinite(number) else f'float("{number}")'
    return f"tl.full([1, 1], {text}, {TYPES[compute]})"


def converted(text: str, source: str, target: str) -> str:
    """A tile of compute type `source` as one of type `target`."""
    if source == target:
        return text
    return f"({text} != 0)" if target == "b8" else f"{text}.to({TYPES[target]})"


def pointwise(value: Value, args: Sequence[str]) -> str:
    """The expression of an element-wise operation; `args` are names of tiles."""
    op, kinds = value.op, [arg.compute for arg in value.args]
    if op == "cast":
        return _cast(value, args[0])
    if op == "copy":
        return args[0]
    if op in COMPARISONS:
        return f"{args[0]} {_COMPARE[op]} {converted(args[1], kinds[1], kinds[0])}"
    if op == "where":
        chosen = map(converted, args[1:], kinds[1:], [value.compute] * 2)
        return f"tl.where({args[0]}, {', '.join(chosen)})"
    operands = [converted(arg, kind, value.compute) for arg, kind in zip(args, kinds, strict=True)]
    if op in _INFIX:
        return f"{operands[0]} {_INFIX[op]} {operands[1]}"
    if op in _LIBRARY:
        return f"libdevice.{_LIBRARY[op]}({', '.join(operands)})"
    if op in _HELPERS:
        return f"{_HELPERS[op]}({', '.join(operands)})"
    return _other(op, operands, value.compute)


def _other(op: str, operands: Sequence[str], compute: str) -> str:
    exact = compute == "f32"
    if op == "div":
        return f"tl.div_rn({operands[0]}, {operands[1]})" if exact else f"{operands[0]} / {operands[1]}"
    if op == "reciprocal":
        one = literal(1.0, compute)
        return f"tl.div_rn({one}, {operands[0]})" if exact else f"{one} / {operands[0]}"
    if op == "sqrt":
        return f"tl.sqrt_rn({operands[0]})" if exact else f"libdevice.sqrt({operands[0]})"
    forms = {"neg": "-{0}", "abs": "tl.abs({0})", "not": "({0} == 0)"}
    if op in forms:
        return forms[op].format(*operands)
    raise Unsupported(f"no Triton for {op}")


def _cast(value: Value, arg: str) -> str:
    text = converted(arg, value.args[0].compute, value.compute)
    narrow = value.dtype != value.compute
    return f"{text}.to({TYPES[value.dtype]}).to({TYPES[value.compute]})" if narrow else text
