"""Two linear maps with nothing between them are one: the product of their weights is kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuda_l1.proposers.techniques.derived import mark
from cuda_l1.proposers.techniques.matching import argument, call_nodes, emit, is_op, only_user, operands, shape
from cuda_l1.proposers.techniques.rewrite import Rewrite

if TYPE_CHECKING:
    from torch.fx import Graph, Node


class MergedLinear(Rewrite):
    """`linear(linear(x, V, c), W, b)` -> `linear(x, W V, W c + b)` where that takes fewer multiplications."""

    name = "merged_linear"

    def sites(self, graph: Graph) -> Iterator[Node]:
        for node in call_nodes(graph, "aten.linear.default"):
            inner = operands(node)[0]
            if is_op(inner, "aten.linear.default") and only_user(inner) is node and _weights_only(inner, node):
                hidden, given = shape(operands(inner)[1])
                results = shape(operands(node)[1])[0]
                if given * results < hidden * (given + results):
                    yield node

    def rewrite(self, graph: Graph, site: Node) -> Node:
        inner = operands(site)[0]
        (x, first), second = operands(inner)[:2], operands(site)[1]
        weight = emit(graph, "matmul.default", second, first)
        bias, inner_bias = argument(site, "bias"), argument(inner, "bias")
        if inner_bias is not None:
            moved = emit(graph, "matmul.default", second, inner_bias)
            bias = moved if bias is None else emit(graph, "add.Tensor", moved, bias)
        mark(node for node in (weight, bias) if node is not None and node.op == "call_function")
        return emit(graph, "linear.default", x, weight, bias)


def _weights_only(*maps: Node) -> bool:
    """Whether weights and biases are read, not computed: their products can be kept."""
    return all(part is None or part.op == "get_attr" for node in maps for part in operands(node)[1:])


TECHNIQUE = MergedLinear()
