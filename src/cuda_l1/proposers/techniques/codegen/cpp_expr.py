"""Element-wise operations as C++ on the vectors of `cpp_runtime`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cuda_l1.proposers.techniques.codegen.ir import COMPARISONS, Unsupported, Value

VECTOR = {"f32": "vf", "f64": "vd", "i32": "vi", "i64": "vl", "b8": "vi"}
CARRIER = {"f32": "f32", "f64": "f64"}
"""Types that scratch memory and accumulators may have."""

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^"}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_CALLS = frozenset((
    "abs", "exp", "exp2", "expm1", "log", "log1p", "sqrt", "rsqrt", "reciprocal", "sin", "cos", "tan", "tanh", "erf",
    "erfc", "atan", "asin", "acos", "sinh", "cosh", "floor", "ceil", "trunc", "round", "sign", "sigmoid", "pow",
    "maximum", "minimum",
))  # fmt: skip


def literal(value: float | int | bool, compute: str) -> str:
    """A number as a vector of one value."""
    if compute == "b8":
        return f"splat({-1 if value else 0})"
    if compute in ("i32", "i64"):
        return f"splat(({compute}){int(value)}L)"
    number = float(value)
    suffix = "f" if compute == "f32" else ""
    if math.isfinite(number):
        return f"splat({number!r}{suffix})" if abs(number) < 3.4e38 or not suffix else f"splat((f32){number!r})"
    text = f'__builtin_nan{suffix}("")' if math.isnan(number) else f"__builtin_inf{suffix}()"
    return f"splat({'-' if number < 0 else ''}{text})"


def converted(text: str, source: str, target: str) -> str:
    """A register of compute type `source` as one of type `target`."""
    if source == target:
        return text
    if target == "b8":
        return f"mask({text} != 0)"
    if source == "b8":
        text = f"({text} & 1)"
    return f"to_{target}({text})" if source != "b8" or target != "i32" else text


def cast(value: Value, arg: str) -> str:
    """An explicit conversion; half precision is rounded, narrow integers wrap."""
    text = converted(arg, value.args[0].compute, value.compute)
    if value.dtype in ("bf16", "f16"):
        return f"round_to({text}, {value.dtype}{{}})"
    wraps = {"i8": "(({0}) << 24) >> 24", "u8": "({0}) & 255", "i16": "(({0}) << 16) >> 16"}
    return wraps[value.dtype].format(text) if value.dtype in wraps else text


def pointwise(value: Value, args: Sequence[str]) -> str:
    """The expression of an element-wise operation; `args` are registers of the arguments' compute types."""
    op, kinds = value.op, [arg.compute for arg in value.args]
    if op == "cast":
        return cast(value, args[0])
    if op == "copy":
        return args[0]
    if op in COMPARISONS:
        return f"mask({args[0]} {_COMPARE[op]} {converted(args[1], kinds[1], kinds[0])})"
    if op == "where":
        return f"sel({args[0]}, " + ", ".join(map(converted, args[1:], kinds[1:], [value.compute] * 2)) + ")"
    operands = [converted(arg, kind, value.compute) for arg, kind in zip(args, kinds, strict=True)]
    if op in _INFIX:
        return f"{operands[0]} {_INFIX[op]} {operands[1]}"
    if op == "neg":
        return f"-{operands[0]}"
    if op == "not":
        return f"~{operands[0]}"
    if op in _CALLS:
        return f"v{op}({', '.join(operands)})"
    raise Unsupported(f"no C++ for {op}")
