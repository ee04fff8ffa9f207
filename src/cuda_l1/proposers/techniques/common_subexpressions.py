"""Equal calls on equal arguments are made once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.matching import FROZEN, is_pure, op_name, storage_root
from cuda_l1.proposers.techniques.rewrite import Rewrite

if TYPE_CHECKING:
    from torch.fx import Graph, Node

COMMUTATIVE = frozenset({"aten.mul.Tensor", "aten.maximum.default", "aten.minimum.default"})


class CommonSubexpressions(Rewrite):
    """A call that repeats an earlier one, argument for argument, reads the earlier result.

    Random draws are never merged, nor calls on memory that forward writes to, nor two results that forward returns.
    """

    name = "common_subexpressions"
    stage = 9

    def sites(self, graph: Graph) -> Iterator[Node]:
        yield from _repeats(graph)

    def rewrite(self, graph: Graph, site: Node) -> Node:
        return _repeats(graph)[site]


def _repeats(graph: Graph) -> dict[Node, Node]:
    """Repeated call -> the first call with the same operation and arguments."""
    output = next(node for node in graph.nodes if node.op == "output")
    returned = {storage_root(node) for node in output.all_input_nodes}
    seen: dict[Hashable, Node] = {}
    repeats: dict[Node, Node] = {}
    for node in graph.nodes:
        if node.op != "call_function" or not is_pure(node) or node.meta.get(FROZEN):
            continue
        earlier = seen.setdefault(_key(node), node)
        if earlier is not node and storage_root(node) not in returned:
            repeats[node] = earlier
    return repeats


def _key(node: Node) -> Hashable:
    arguments = [_freeze(argument) for argument in node.args]
    if op_name(node) in COMMUTATIVE:
        arguments = sorted(arguments, key=repr)
    return (node.target, tuple(arguments), tuple(sorted((k, _freeze(v)) for k, v in node.kwargs.items())))


def _freeze(value: Any) -> Hashable:
    """A hashable stand-in that tells 1, 1.0 and True apart, and equal attributes alike."""
    if isinstance(value, list | tuple):
        return tuple(_freeze(item) for item in value)
    if getattr(value, "op", None) == "get_attr":
        return ("weight", str(value.target))
    if hasattr(value, "op"):
        return ("node", value.name)
    return (type(value).__name__, repr(value))


TECHNIQUE = CommonSubexpressions()
