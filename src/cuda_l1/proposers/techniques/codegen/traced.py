"""Regions as short Python functions, which `traced` of the prelude compiles: no shape stands in their text."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.codegen.ir import COSTS, Shape, Unsupported, Value, broadcast, topological
from cuda_l1.proposers.techniques.codegen.lowering import Lowering, Piece, contiguous, dtype_of, is_alias
from cuda_l1.proposers.techniques.codegen.regions import Region, worthwhile
from cuda_l1.proposers.techniques.matching import op_name, shape, tensor

if TYPE_CHECKING:
    from torch.fx import Node

LONGEST = 256
"""Operations of a region; a compiler takes up to three seconds for every hundred statements."""

LONG_COST = 8
"""Cost of an operation (`COSTS`) that is not repeated for more than `MOST_REPEATED` elements, nor a reduction."""
MOST_REPEATED = 2

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
_CALLS = frozenset((
    "abs", "exp", "exp2", "expm1", "log", "log1p", "sqrt", "rsqrt", "reciprocal", "sin", "cos", "tan", "tanh", "erf",
    "erfc", "atan", "asin", "acos", "sinh", "cosh", "floor", "ceil", "trunc", "round", "sign", "sigmoid", "pow",
    "maximum", "minimum", "where",
))  # fmt: skip
_FOLDS = {"sum": "sum", "max": "amax", "min": "amin"}
_RESERVED = frozenset({*_CALLS, *_FOLDS.values(), "mean", "squeeze", "float"})


@dataclass(frozen=True)
class TracedFunction:
    """What a region becomes: a function of `nodes`, in the order of its arguments."""

    name: str
    nodes: list[Node]
    text: str
    views: Mapping[int, Shape] = field(default_factory=dict)
    """Place of an argument -> the shape that it is given in, where that is not its node's."""

    def alike(self) -> str:
        """A text that functions have in common which differ in nothing but names."""
        first, _, body = self.text.partition("\n    ")
        places = {name: f"in{place}" for place, name in enumerate(re.findall(r"\w+", first.partition("(")[2]))}
        return re.sub(r"\w+", lambda word: places.get(word[0], word[0]), body)


class _Refused(Unsupported):
    """What no traced function can say; `nodes` are to blame, where that is known."""

    def __init__(self, reason: str, *nodes: Node | None) -> None:
        super().__init__(reason)
        self.nodes = {node for node in nodes if node is not None}


class _Lowering(Lowering):
    """Views of what lies outside of the region are arguments as they are."""

    def _load(self, node: Any) -> Value:
        strides = tuple(tensor(node).stride())
        return self.b.make("load", (), shape(node), dtype_of(node), source=node, strides=strides, offset=0)

    def node_of(self, value: Value) -> Node | None:
        """The member of the region whose rule made `value`."""
        seen: set[Value] = set()
        node: Node
        for node, made in self.env.items():
            values = [made] if isinstance(made, Value) else [part for part in made if part is not None]
            found = topological(values, stop=seen)
            if value in found:
                return node
            seen.update(found)
        return None


def traced_function(name: str, region: Region) -> TracedFunction:
    """The function of a region. Raises Unsupported, with the `nodes` to blame where they are known."""
    if len(region.work()) > LONGEST:
        raise _Refused("a loop that is unrolled", *region.nodes)
    _leave_views_outside(region)
    outputs = region.outputs()
    if not worthwhile(region) or not outputs:
        raise Unsupported("too little to compute")
    low = _Lowering(region.nodes)
    try:
        program = low.run(region.nodes, outputs)
    except Unsupported as reason:
        left = (node for node in region.nodes if node not in low.env and op_name(node) != "getitem")
        raise _Refused(str(reason), next(left, None)) from None
    printer = _Printer(low, program.values)
    results = [_result(printer, node, program.outputs[node]) for node in outputs]
    views = {place: leaf.shape for place, leaf in enumerate(printer.arguments) if leaf.op == "reshape"}
    return TracedFunction(name, list(map(_source, printer.arguments)), printer.text(name, results), views)


def _leave_views_outside(region: Region) -> None:
    """A view of what is computed elsewhere is an argument."""
    inside: list[Node] = []
    for node in region.nodes:
        if not is_alias(node) or any(source in inside for source in node.all_input_nodes):
            inside.append(node)
    region.nodes = inside


def _result(printer: _Printer, node: Node, pieces: Sequence[Piece]) -> str:
    """What the function returns for an output of the region."""
    sizes, value = shape(node), pieces[0].value
    expected = contiguous(sizes)
    dense = all(n == 1 or s == e for n, s, e in zip(sizes, pieces[0].strides, expected, strict=True))
    if len(pieces) > 1 or pieces[0].offset or not dense or value.dtype != "f32":
        raise _Refused("a result that is no contiguous float32 tensor", node)
    whole = printer.shape
    row = whole[: len(whole) - printer.dims]
    if value in printer.dropped and value.shape == row:
        return f"squeeze({printer.names[value]})"
    alike = value.shape == ((*row, *(1,) * printer.dims) if value in printer.rows else whole)
    if value in printer.dropped or value not in printer.names or not alike:
        raise _Refused("a result of another shape than the function's", node)
    return printer.names[value]


class _Printer:
    """The statements of the values of a region."""

    def __init__(self, low: _Lowering, values: Sequence[Value]) -> None:
        self.low = low
        self.arguments: dict[Value, str] = {}
        self.names: dict[Value, str] = {}
        self.rows: set[Value] = set()
        """Results of reductions and what is computed from them alone: one number per row."""
        self.dropped: set[Value] = set()
        """Those of them whose last dimensions are gone."""
        self.dims = 0
        """How many dimensions reductions go over."""
        self.lines: list[str] = []
        self.shape: Shape = ()
        order = topological(values)
        views = {value for value in order if value.op == "reshape" and _is_vector(value.args[0])}
        read = {*values, *(arg for value in order if value not in views for arg in value.args)}
        for value in order:
            if value in views or (value.op == "load" and value in read):
                self._argument(value)
        skipped = {*views, *self._sums_of_means(order, values)}
        for value in order:
            if value not in skipped:
                self._define(value)

    def _argument(self, value: Value) -> None:
        node = _source(value)
        backwards = value.op == "load" and value.attrs["strides"] != tensor(node).stride()
        if value.dtype != "f32" or backwards:
            raise self._refused("an argument that is not float32 or read backwards", value)
        try:
            self.shape = broadcast([self.shape, value.shape])
        except Unsupported as reason:
            raise self._refused(str(reason), value) from None
        given = str(node.target).rpartition(".")[2]
        name = given if node.op != "call_function" and given.isidentifier() else node.name
        while (
            name in _RESERVED or name in self.arguments.values() or keyword.iskeyword(name) or re.match(r"v\d+$", name)
        ):
            name += "_"
        self.arguments[value] = self.names[value] = name

    def _sums_of_means(self, order: Sequence[Value], outputs: Sequence[Value]) -> set[Value]:
        """Sums that are read by nothing but their divisions by a count."""
        others = set(outputs) | {arg for value in order if _correction(value) is None for arg in value.args}
        return {value.args[0] for value in order if _correction(value) is not None} - others

    def _refused(self, reason: str, value: Value) -> _Refused:
        return _Refused(reason, self.low.node_of(value))

    def _define(self, value: Value) -> None:
        if value.op in ("load", "const"):
            return
        if value.op in ("copy", "expand", "reshape"):
            self._rename(value)
            return
        args = [arg for arg in value.args if _constant(arg) is None]
        short = [arg in self.dropped for arg in args]
        if not args:
            raise self._refused("a computation on numbers alone", value)
        if any(short) != all(short):
            raise self._refused("what has lost a dimension beside what has not", value)
        if any(short):
            self.dropped.add(value)
        if value.op == "reduce" or _correction(value) is not None or all(arg in self.rows for arg in args):
            self.rows.add(value)
        if self._is_repeated(value):
            raise self._refused("what is computed once would be computed for each of many rows", value)
        self._state(value, self._expression(value))

    def _is_repeated(self, value: Value) -> bool:
        """Whether something that takes long is the same for many of the elements it would be computed for."""
        reduced = value.args[0] if _correction(value) is not None else value
        if reduced.op == "reduce":
            (value,) = reduced.args
        elif value in self.rows or COSTS.get(value.op, 1) < LONG_COST:
            return False
        return value not in self.rows and math.prod(value.shape) * MOST_REPEATED < math.prod(self.shape)

    def _state(self, value: Value, text: str) -> None:
        self.names[value] = f"v{len(self.lines) + 1}"
        self.lines.append(f"{self.names[value]} = {text}")

    def _rename(self, value: Value) -> None:
        """A value that is another one, but for its shape."""
        (arg,) = value.args
        if _constant(value) is not None:
            return
        short = arg in self.dropped
        if value.op == "reshape":
            ones = (1,) * self.dims
            before, after = (arg.shape, (*value.shape, *ones)) if not short else ((*arg.shape, *ones), value.shape)
            if arg not in self.rows or before != after:
                raise self._refused("a reshape of something that is computed", value)
            short = not short
        elif value.op == "expand" and short:
            raise self._refused("an expansion of something that has lost a dimension", value)
        self.names[value] = self.names[arg]
        if arg in self.rows:
            self.rows.add(value)
        if short:
            self.dropped.add(value)

    def _expression(self, value: Value) -> str:
        correction = _correction(value)
        if correction is not None:
            return f"mean({self._folded(value.args[0])}{f', correction={correction}' if correction else ''})"
        if value.op == "reduce":
            return f"{_FOLDS[value.attrs['kind']]}({self._folded(value)})"
        texts = [self._text(arg) for arg in value.args]
        kinds = [arg.dtype for arg in (*value.args, value)]
        if value.op == "cast" and kinds == ["b8", "f32"]:
            return f"where({texts[0]}, 1.0, 0.0)"
        if value.op == "cast" and kinds == ["f32", "b8"]:
            return f"{texts[0]} != 0.0"
        if value.dtype not in ("f32", "b8"):
            raise self._refused(f"a value of {value.dtype}", value)
        if value.op in _INFIX:
            return f"{texts[0]} {_INFIX[value.op]} {texts[1]}"
        if value.op in ("neg", "not"):
            return f"{'-' if value.op == 'neg' else '~'}{texts[0]}"
        if value.op in _CALLS:
            return f"{value.op}({', '.join(texts)})"
        raise self._refused(f"no traced function for {value.op}", value)

    def _folded(self, value: Value) -> str:
        """The arguments of a reduction over the last dimensions of the function's shape, in all as many."""
        (arg,) = value.args
        rank, first = len(arg.shape), min(value.attrs["dims"])
        dims, ones = rank - first, {dim for dim in range(first, rank) if arg.shape[dim] == 1}
        self.dims = self.dims or dims
        behind = {*value.attrs["dims"], *ones} == set(range(first, rank))
        if not behind or dims != self.dims or arg.shape[first:] != self.shape[-dims:] or arg in self.dropped:
            raise self._refused("a reduction over other dimensions than the last", value)
        return f"{self._text(arg)}{f', {dims}' if dims > 1 else ''}"

    def _text(self, value: Value) -> str:
        number = _constant(value)
        if number is None:
            return self.names[value]
        if isinstance(number, bool):
            raise self._refused("a constant truth value", value)
        return repr(float(number)) if math.isfinite(number) else f'float("{float(number)}")'

    def text(self, name: str, results: Sequence[str]) -> str:
        """The whole function; a single result that the last statement makes has no name."""
        *lines, last = [*self.lines, f"return {', '.join(results)}"]
        if len(results) == 1 and lines and lines[-1].startswith(f"{results[0]} = "):
            last = "return " + lines.pop().partition(" = ")[2]
        body = "".join(f"    {line}\n" for line in [*lines, last])
        return f"@traced\ndef {name}({', '.join(self.arguments.values())}):\n{body}"


def _source(value: Value) -> Node:
    """The node that an argument is, or is a view of."""
    node: Node = (value.args[0] if value.op == "reshape" else value).attrs["source"]
    return node


def _is_vector(value: Value) -> bool:
    """Whether a value is memory that can be viewed in any shape, as a weight per channel is."""
    return value.op == "load" and len(value.shape) == 1


def _constant(value: Value) -> float | int | bool | None:
    """The number that a value is everywhere."""
    while value.op in ("expand", "reshape", "copy"):
        (value,) = value.args
    number: float | int | bool | None = value.attrs["value"] if value.op == "const" else None
    return number


def _correction(value: Value) -> int | None:
    """Of a sum that is divided by the count of what is added, less 0 or 1, that number."""
    if value.op != "mul" or value.args[0].op != "reduce" or value.args[0].attrs["kind"] != "sum":
        return None
    (summed,) = value.args[0].args
    count, factor = math.prod(summed.shape[dim] for dim in value.args[0].attrs["dims"]), _constant(value.args[1])
    return next((less for less in (0, 1) if count > less and factor == 1.0 / (count - less)), None)
