"""Operators and what they read. A graph is its outputs: what no output needs is not part of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from cuda_l1.types import digest

COMMUTATIVE = frozenset({"add", "mul", "maximum", "minimum", "eq", "ne", "logicaland", "logicalor", "bitwiseand"})
_NUMBER = re.compile(r"(?<![%\w.])-?\d+(\.\d+)?(e-?\d+)?(?![\w.])")
LEAVES = frozenset({"input", "weight"})


class Node:
    """One operator applied to values: other nodes, numbers, strings, None, tuples, lists and dicts of these.

    A leaf (`input`, `weight`) is one tensor that is given. Its identity is the object: two linear layers of one size
    are two weights. `args` of a leaf say of which kind it is.
    """

    __slots__ = ("args", "kind", "op", "options")

    def __init__(self, op: str, args: tuple[Any, ...] = (), options: tuple[tuple[str, Any], ...] = ()) -> None:
        if op in COMMUTATIVE and not options:
            args = tuple(sorted(args, key=_text))
        self.op = op
        self.args = args
        """Where the operator commutes, in an order that does not depend on the text."""
        self.options = options
        self.kind = digest(op, *map(_text, args), *(f"{name}={_text(value)}" for name, value in options))
        """A digest in which all leaves of a kind are one."""


def canonical(outputs: Any, *, with_numbers: bool = True) -> str:
    """A digest of the graph behind `outputs` (a value as above), free of every name in the text.

    Without numbers, graphs that differ in a constant, a kernel or a dimension have one digest. Nodes are
    numbered in the order in which a walk from the outputs leaves them, equal ones once.
    """
    lines: dict[str, int] = {}
    numbers: dict[int, str] = {}
    leaves: dict[int, int] = {}
    for node in in_order(outputs):
        own = f"#{leaves.setdefault(id(node), len(leaves))}" if node.op in LEAVES else ""
        values = [*(_text(value, numbers) for value in node.args)]
        values += [f"{name}={_text(value, numbers)}" for name, value in node.options]
        if not with_numbers:
            values = [_NUMBER.sub("n", value) for value in values]
        line = f"{node.op}{own}({';'.join(values)})"
        numbers[id(node)] = f"%{lines.setdefault(line, len(lines))}"
    return digest(*lines, _text(outputs, numbers))


def in_order(outputs: Any) -> Iterator[Node]:
    """Every node once, behind all that it reads. Without recursion: a recurrent task has thousands of steps."""
    done: set[int] = set()
    waiting: list[tuple[Node, bool]] = [(node, False) for node in reversed(list(nodes_of(outputs)))]
    while waiting:
        node, ready = waiting.pop()
        if id(node) in done:
            continue
        if ready:
            done.add(id(node))
            yield node
            continue
        waiting.append((node, True))
        read = [child for value in (*node.args, *(value for _, value in node.options)) for child in nodes_of(value)]
        waiting += [(child, False) for child in reversed(read)]


def nodes_of(value: Any) -> Iterator[Node]:
    """The nodes in a value, not what these read."""
    if isinstance(value, Node):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from nodes_of(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from nodes_of(item)


def _text(value: Any, numbers: dict[int, str] | None = None) -> str:
    """A value in one spelling: 2 and 2.0 are one, and so are 1e-5 and 0.00001, a list and a tuple."""
    if isinstance(value, Node):
        return value.kind if numbers is None else numbers[id(value)]
    if isinstance(value, (tuple, list)):
        return "(" + ",".join(_text(item, numbers) for item in value) + ")"
    if isinstance(value, dict):
        return "{" + ",".join(f"{_text(key)}:{_text(item, numbers)}" for key, item in value.items()) + "}"
    if isinstance(value, float) and value.is_integer():
        return repr(int(value))
    if isinstance(value, (int, float, complex, str)) or value is None:
        return repr(value)
    return str(getattr(value, "path", type(value).__name__))  # a name of a library, such as torch.float16


SIZE = Node("size")
"""Any number that says how large a tensor is: all of them are one."""
