"""Expressions: immutable values over dense index spaces, each built once however often it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Shape = tuple[int, ...]

FLOATS = ("f32", "f64", "bf16", "f16")
INTEGERS = ("i64", "i32", "i16", "i8", "u8")

ITEMSIZE = {"f32": 4, "f64": 8, "bf16": 2, "f16": 2, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "u8": 1, "b8": 1}

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")

COSTS = {
    **dict.fromkeys(("exp", "exp2", "expm1", "log", "sigmoid"), 8),
    **dict.fromkeys(("log1p", "tanh", "erf", "sin", "cos"), 16),
    **dict.fromkeys(("pow", "tan", "atan", "asin", "acos", "sinh", "cosh", "erfc", "fmod"), 40),
    **dict.fromkeys(("div", "sqrt", "rsqrt", "reciprocal"), 3),
}
"""Rough cost of one element against an addition (1), to decide what may be computed twice."""


class Unsupported(Exception):
    """A node or a combination of nodes that no kernel is generated for; the region is left alone."""


@dataclass(frozen=True, eq=False)
class Value:
    """One array. `op` is `load`, `const`, `iota`, `reduce`, `scan`, `at`, one of VIEWS, or the name of an element-wise
    operation, whose arguments broadcast to `shape`. Half precision is computed in f32."""

    op: str
    args: tuple[Value, ...]
    shape: Shape
    dtype: str
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def compute(self) -> str:
        """The type that registers hold: f32, f64, i64, i32 or b8."""
        return compute_type(self.dtype)

    def __repr__(self) -> str:
        return f"{self.op}{list(self.shape)}:{self.dtype}"


def compute_type(dtype: str) -> str:
    """f32 for half precision, i32 for narrow integers, else the type itself."""
    return {"bf16": "f32", "f16": "f32", "i16": "i32", "i8": "i32", "u8": "i32"}.get(dtype, dtype)


VIEWS = frozenset({"reshape", "permute", "slice", "cat", "expand", "flip"})
LEAVES = frozenset({"load", "const", "iota"})


def is_pointwise(value: Value) -> bool:
    """Whether the value is computed element by element from its arguments."""
    return value.op not in VIEWS and value.op not in LEAVES and value.op not in ("reduce", "scan", "at")


def broadcast(shapes: Iterable[Shape]) -> Shape:
    """The common shape of element-wise operands; raises Unsupported when there is none."""
    result: list[int] = []
    for shape in shapes:
        padded = [1] * (len(shape) - len(result)) + result
        for back, size in enumerate(reversed(shape), 1):
            if padded[-back] != size and 1 not in (padded[-back], size):
                raise Unsupported(f"shapes do not broadcast: {shape}")
            padded[-back] = size if padded[-back] == 1 else padded[-back]
        result = padded
    return tuple(result)


class Builder:
    """Makes values; equal requests give the same object, so common subexpressions exist once."""

    def __init__(self) -> None:
        self._made: dict[Any, Value] = {}

    def make(self, op: str, args: Sequence[Value], shape: Shape, dtype: str, **attrs: Any) -> Value:
        key = (op, tuple(map(id, args)), shape, dtype, tuple(sorted((k, _key(v)) for k, v in attrs.items())))
        if key not in self._made:
            self._made[key] = Value(op, tuple(args), shape, dtype, attrs)
        return self._made[key]

    def const(self, value: float | int | bool, dtype: str) -> Value:
        return self.make("const", (), (), dtype, value=value)

    def point(self, op: str, *args: Value | float | int, dtype: str | None = None) -> Value:
        """An element-wise operation; numbers become constants of the type of the first array argument."""
        like = next(arg for arg in args if isinstance(arg, Value) and (op != "where" or arg is not args[0]))
        values = [arg if isinstance(arg, Value) else self.const(arg, like.dtype) for arg in args]
        result = dtype or ("b8" if op in COMPARISONS else like.dtype)
        return self.make(op, values, broadcast(value.shape for value in values), result)

    def cast(self, value: Value, dtype: str) -> Value:
        """`value` as `dtype`; where only the storage type differs and nothing is lost, registers stay as they are."""
        if value.dtype == dtype:
            return value
        if value.op == "const":
            return self.const(_convert(value.attrs["value"], dtype), dtype)
        return self.make("cast", (value,), value.shape, dtype)

    def reduce(self, kind: str, value: Value, dims: Sequence[int]) -> Value:
        """`sum`, `max` or `min` over `dims`, which stay with size 1."""
        shape = tuple(1 if dim in dims else size for dim, size in enumerate(value.shape))
        if shape == value.shape:
            return value
        kept = tuple(sorted(dim for dim in dims if value.shape[dim] > 1))
        return self.make("reduce", (value,), shape, value.dtype, kind=kind, dims=kept)

    def reshape(self, value: Value, shape: Shape) -> Value:
        if value.shape == shape:
            return value
        if value.op == "const":
            return self.make("expand", (value,), shape, value.dtype)
        return self.make("reshape", (value,), shape, value.dtype)

    def expand(self, value: Value, shape: Shape) -> Value:
        return value if value.shape == shape else self.make("expand", (value,), shape, value.dtype)


def _key(value: Any) -> Any:
    """Attributes as keys: -0.0 and 0.0, 1 and True and nan are kept apart."""
    return (type(value).__name__, repr(value)) if isinstance(value, (int, float, bool)) else value


def _convert(value: float | int | bool, dtype: str) -> float | int | bool:
    if dtype == "b8":
        return bool(value)
    if dtype in INTEGERS:
        if (isinstance(value, float) and value != value) or value in (float("inf"), float("-inf")):
            raise Unsupported("a non-finite number as an integer")
        return int(value)
    return float(value)


def topological(outputs: Iterable[Value], stop: frozenset[Value] | set[Value] = frozenset()) -> list[Value]:
    """Every value that `outputs` need, arguments first; values in `stop` are listed without their arguments."""
    order: dict[Value, None] = {}
    pending: list[tuple[Value, bool]] = [(value, False) for value in reversed(list(outputs))]
    while pending:
        value, ready = pending.pop()
        if value in order:
            continue
        if ready or value in stop:
            order[value] = None
            continue
        pending.append((value, True))
        pending.extend((arg, False) for arg in reversed(value.args))
    return list(order)
