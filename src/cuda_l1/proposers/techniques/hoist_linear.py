"""One linear map over many slices of one tensor, a loop over time say, is one linear map over the whole tensor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.matching import argument, call_nodes, emit, is_op, op_name, operands, shape
from cuda_l1.proposers.techniques.rewrite import GroupRewrite

if TYPE_CHECKING:
    from torch.fx import Graph, Node

LEAST_SHARE = 0.5
"""The slices must cover this share of the tensor, or mapping all of it is wasted."""


class HoistLinear(GroupRewrite):
    """`linear(x[:, t], W, b)` for many t: slices of `linear(x, W, b)`, computed at once."""

    name = "hoist_linear"

    def groups(self, graph: Graph) -> Iterator[list[Node]]:
        found: dict[Any, list[Node]] = {}
        for node in call_nodes(graph, "aten.linear.default"):
            place = _slice(operands(node)[0])
            if place is not None and all(_is_weight(other) for other in operands(node)[1:]):
                whole, dim, _ = place
                found.setdefault((whole, dim, *operands(node)[1:]), []).append(node)
        for (whole, dim, *_), group in found.items():
            indices = {_slice(operands(node)[0]) for node in group}
            if len(indices) > 1 and len(indices) >= LEAST_SHARE * shape(whole)[dim]:
                yield group

    def merge(self, graph: Graph, group: list[Node]) -> list[Node]:
        place = _slice(operands(group[0])[0])
        assert place is not None
        whole, dim, _ = place
        joint = emit(graph, "linear.default", whole, *operands(group[0])[1:])
        indices = [_slice(operands(node)[0])[2] for node in group]  # type: ignore[index]
        return [emit(graph, "select.int", joint, dim, index) for index in indices]


def _slice(node: Any) -> tuple[Any, int, int] | None:
    """(tensor, dimension, index) when `node` is one slice of a tensor, not along its features."""
    if is_op(node, "aten.select.int"):
        whole, dim, index = operands(node)[:3]
    elif op_name(node) == "getitem" and is_op(operands(node)[0], "aten.unbind.int"):
        whole, index = operands(operands(node)[0])[0], operands(node)[1]
        dim = argument(operands(node)[0], "dim")
    else:
        return None
    rank = len(shape(whole))
    return (whole, dim % rank, index % shape(whole)[dim]) if dim % rank != rank - 1 else None


def _is_weight(node: Any) -> bool:
    return node is None or getattr(node, "op", "") == "get_attr"


TECHNIQUE = HoistLinear()
