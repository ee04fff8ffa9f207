"""Operators of Python on what is known and on what is not: computed on constants, nodes of the graph on tensors."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from cuda_l1.tasks.dataflow.graph import SIZE, Node
from cuda_l1.tasks.dataflow.values import Chain, Dotted, Unreadable

_BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", operator.truediv),
    ast.FloorDiv: ("floordiv", operator.floordiv),
    ast.Mod: ("remainder", operator.mod),
    ast.Pow: ("pow", operator.pow),
    ast.MatMult: ("matmul", operator.matmul),
    ast.BitAnd: ("bitwiseand", operator.and_),
    ast.BitOr: ("bitwiseor", operator.or_),
    ast.BitXor: ("bitwisexor", operator.xor),
    ast.LShift: ("lshift", operator.lshift),
    ast.RShift: ("rshift", operator.rshift),
}
_COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("eq", operator.eq),
    ast.NotEq: ("ne", operator.ne),
    ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le),
    ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge),
    ast.Is: ("is", operator.is_),
    ast.IsNot: ("isnot", operator.is_not),
    ast.In: ("in", lambda a, b: a in b),
    ast.NotIn: ("notin", lambda a, b: a not in b),
}
_UNARY: dict[type[ast.unaryop], tuple[str, Callable[[Any], Any]]] = {
    ast.USub: ("neg", operator.neg),
    ast.UAdd: ("pos", operator.pos),
    ast.Not: ("not", operator.not_),
    ast.Invert: ("bitwisenot", operator.invert),
}
_MOST_BITS = 256
_LONGEST = 100_000
PLAIN = (int, float, str, bool, complex, type(None))


def truth(value: Any) -> bool | None:
    """Whether a value counts as true; None where that is not known from the text."""
    if isinstance(value, (*PLAIN, list, tuple, dict, range)):
        return bool(value)
    return None if isinstance(value, (Node, Dotted)) else True


def binary(op: ast.operator, left: Any, right: Any) -> Any:
    """`left op right`: computed on constants, one SIZE on sizes, a node on tensors."""
    name, compute = _BINARY[type(op)]
    if isinstance(left, (*PLAIN, list, tuple)) and isinstance(right, (*PLAIN, list, tuple)):
        if name == "pow" and isinstance(left, int) and isinstance(right, float):
            return SIZE  # dim ** -0.5
        return _bounded(name, compute, left, right)
    if all(side is SIZE or isinstance(side, (int, float)) for side in (left, right)):
        return SIZE
    return Node(name, (left, right))


def _bounded(name: str, compute: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """A constant, unless it is one that no task needs: foreign text may ask for a number that fills the memory."""
    if isinstance(left, str) and name == "remainder":
        raise Unreadable("formats a text")
    grows = name in ("pow", "lshift") and isinstance(left, int) and isinstance(right, int)
    if grows and right * (left.bit_length() if name == "pow" else 1) > _MOST_BITS:
        raise Unreadable("a number beyond any size")
    for sequence, factor in ((left, right), (right, left)):
        if name == "mul" and isinstance(sequence, (str, list, tuple)) and len(sequence) * int(factor) > _LONGEST:
            raise Unreadable("a list beyond any size")
    found = compute(left, right)
    if isinstance(found, int) and found.bit_length() > _MOST_BITS:
        raise Unreadable("a number beyond any size")
    if isinstance(found, (str, list, tuple)) and len(found) > _LONGEST:
        raise Unreadable("a list beyond any size")
    return found


def as_text(value: Any = "") -> str:
    """`str(value)` of a constant. Raises Unreadable for lists and tensors."""
    if isinstance(value, PLAIN):
        return str(value)
    raise Unreadable("writes a value as text")


def unary(op: ast.unaryop, value: Any) -> Any:
    """`not value`, `-value`, ..."""
    name, compute = _UNARY[type(op)]
    if name == "not" and (known := truth(value)) is not None:
        return not known
    if isinstance(value, PLAIN):
        return compute(value)
    return SIZE if value is SIZE else Node(name, (value,))


def compare(kind: ast.cmpop, left: Any, right: Any) -> Any:
    """`left kind right`: whether it holds, or a node."""
    name, compute = _COMPARE[type(kind)]
    if name in ("is", "isnot") and (left is None or right is None):
        return (left is right) is (name == "is")
    if isinstance(left, (*PLAIN, tuple, list)) and isinstance(right, (*PLAIN, tuple, list, dict)):
        return compute(left, right)
    return Node(name, (left, right))


def item(owner: Any, index: Any) -> Any:
    """`owner[index]`."""
    if isinstance(owner, Chain):
        found = owner.layers[index]
        return Chain(found) if isinstance(found, list) else found
    if isinstance(owner, (list, tuple, dict, str, range)) and not isinstance(index, Node):
        return owner[index]
    if owner is SIZE or (isinstance(owner, Node) and owner.op == "shape"):
        return [Node("shape", (owner,))] if isinstance(index, slice) else SIZE
    return Node("getitem", (owner, _index(index)))


def _index(index: Any) -> Any:
    """An index with its slices as nodes, and its sizes as one."""
    if isinstance(index, slice):
        return Node("slice", tuple(_index(part) for part in (index.start, index.stop, index.step)))
    if isinstance(index, (tuple, list)):
        return tuple(_index(part) for part in index)
    return index
