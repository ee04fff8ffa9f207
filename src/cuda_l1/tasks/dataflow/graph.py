"""Operators and what they read. A graph is its outputs: what no output needs is not part of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cuda_l1.types import digest

COMMUTATIVE = frozenset({"add", "mul", "maximum", "minimum", "eq", "ne", "logicaland", "logicalor", "bitwiseand"})
LEAVES = frozenset({"input", "weight", "carried"})
_MOST_SWEEPS = 8
"""Graphs of tasks take one or two; foreign text may ask for one for each operator."""
_MOST_SINGLED = 200_000
"""Operators whose colours are refined once more, in all: what takes longer is not told apart so finely."""
_DEEPEST = 100


class Node:
    """One operator applied to values: other nodes, numbers, strings, None, tuples and dicts of these.

    A leaf (`input`, `weight`, what a loop has `carried` from one pass to the next) is one tensor that is given. Its
    identity is the object: two linear layers of one size are two weights. `args` of a leaf say of which kind it is.
    """

    __slots__ = ("args", "op", "options")

    def __init__(self, op: str, args: tuple[Any, ...] = (), options: tuple[tuple[str, Any], ...] = ()) -> None:
        self.op = op
        self.args: tuple[Any, ...] = _frozen(args)
        self.options: tuple[tuple[str, Any], ...] = _frozen(options)


def canonical(outputs: Any, *, with_numbers: bool = True) -> str:
    """A digest of the graph behind `outputs` (a value as above), free of every name in the text.

    Graphs have one digest where they differ in nothing but which leaf of a kind is which, the order of operands that
    commute, and how often an equal operator is written. Others have two, as far as colours tell them apart: those of
    `_refined`, also with one operator singled out. It takes symmetry upon symmetry to confuse that.

    Without numbers, graphs that differ in a constant, a kernel or a dimension have one digest, also where a setting is
    the default and therefore not in the graph. Operators that differ in nothing else are equal then.
    """
    operators = _merged(Node("outputs", (outputs,)), with_numbers=with_numbers)
    colours = _refined(operators, [one.words for one in operators])
    alike: dict[str, list[int]] = {}
    for index, colour in enumerate(colours):
        alike.setdefault(colour, []).append(index)
    fewest, colour = min(((len(found), colour) for colour, found in alike.items() if len(found) > 1), default=(0, ""))
    singled = alike[colour] if 0 < fewest * len(operators) <= _MOST_SINGLED else []
    refined = (_refined(operators, [*colours[:one], "one", *colours[one + 1 :]]) for one in singled)
    return digest(*sorted(colours), *sorted(digest(*sorted(found)) for found in refined))


def _refined(operators: Sequence[_Operator], colours: Sequence[str]) -> list[str]:
    """Each operator's colour together with those of what it reads and of what reads it, until that tells no more
    operators apart (Weisfeiler and Lehman's refinement). Nothing in it depends on how operators are numbered."""
    readers: list[list[tuple[str, int]]] = [[] for _ in operators]
    for index, one in enumerate(operators):
        for place, read in enumerate(one.reads):
            readers[read].append(("" if one.commutes else f"{place} ", index))
    found, count = list(colours), len(set(colours))
    for _ in range(_MOST_SWEEPS):
        for index, one in enumerate(operators):
            below = [found[read] for read in one.reads]
            found[index] = digest(found[index], *(sorted(below) if one.commutes else below))
        for index in reversed(range(len(operators))):
            found[index] = digest(found[index], *sorted(place + found[by] for place, by in readers[index]))
        before, count = count, len(set(found))
        if count in (before, len(operators)):  # no finer than before, or as fine as can be
            break
    return found


class _Operator(NamedTuple):
    """An operator of a graph in which equal ones are one. It has a number behind those of all that it reads."""

    words: str
    """Its name and values, with a mark for each operator that is read."""
    reads: tuple[int, ...]
    """The operators at the marks, by number; sorted where it commutes."""
    commutes: bool


def _merged(root: Node, *, with_numbers: bool) -> list[_Operator]:
    """All operators behind `root`, which is the last one."""
    found: dict[tuple[_Operator, int | None], int] = {}
    numbers: dict[int, int] = {}
    for node in in_order(root):
        if with_numbers or node is not SIZE:
            leaf = id(node) if node.op in LEAVES else None
            numbers[id(node)] = found.setdefault((_operator(node, numbers, with_numbers), leaf), len(found))
    return [operator for operator, _ in found]


def _operator(node: Node, numbers: Mapping[int, int], with_numbers: bool) -> _Operator:
    reads: list[int] = []

    def text(value: Any) -> str:
        """A value in one spelling: 2 and 2.0 are one, and so are 1e-5 and 0.00001, a list and a tuple."""
        if not with_numbers and (value is SIZE or _is_number(value)):
            return "n"
        if isinstance(value, Node):
            reads.append(numbers[id(value)])
            return "%"
        if isinstance(value, tuple):
            return "(" + ",".join(map(text, value)) + ")"
        if isinstance(value, dict):
            return "{" + ",".join(map(text, value.items())) + "}"
        if isinstance(value, float) and value.is_integer():
            return repr(int(value))
        if isinstance(value, (int, float, complex, str)) or value is None:
            return repr(value)
        return str(getattr(value, "path", type(value).__name__))  # a name of a library, such as torch.float16

    args = [text(value) for value in node.args]
    options = [
        f"{name}={text(value)}" for name, value in node.options if with_numbers or not _holds_only_numbers(value)
    ]
    commutes = (
        node.op in COMMUTATIVE and not node.options and not any(isinstance(arg, (tuple, dict)) for arg in node.args)
    )
    if commutes:
        args.sort()
        reads.sort()
    return _Operator(f"{node.op}({';'.join([*args, *options])})", tuple(reads), commutes)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex)) and not isinstance(value, bool)


def _holds_only_numbers(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_holds_only_numbers, value))
    return value is SIZE or _is_number(value)


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
        yield from nodes_of(tuple(value.items()))


def _frozen(value: Any, deepest: int = _DEEPEST) -> Any:
    """A value as it is now: a list that the text goes on to change is another value then.

    Raises RecursionError for tuples in tuples in tuples, without an end or nearly so.
    """
    if isinstance(value, (tuple, list, dict)) and deepest == 0:
        raise RecursionError("a value within a value, and so on")
    if isinstance(value, (tuple, list)):
        return tuple(_frozen(item, deepest - 1) for item in value)
    if isinstance(value, dict):
        return {key: _frozen(item, deepest - 1) for key, item in value.items()}
    return value


SIZE = Node("size")
"""Any number that says how large a tensor is: all of them are one."""
