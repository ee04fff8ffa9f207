"""A product with a diagonal matrix is a scaling of rows or columns: O(n m) in place of O(n^2 m)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.matching import argument, call_nodes, emit, is_op, operands, shape
from cuda_l1.proposers.techniques.rewrite import Rewrite

if TYPE_CHECKING:
    from torch.fx import Graph, Node

PRODUCTS = ("aten.matmul.default", "aten.mm.default", "aten.bmm.default")


class DiagonalMatmul(Rewrite):
    """`diag(a) @ B` -> `a[:, None] * B`, `B @ diag(a)` -> `B * a`, batched with `diag_embed`.

    Assumes finite operands: a product with an explicit zero turns inf and nan elsewhere in the row or column into
    nan, the scaling does not.
    """

    name = "diagonal_matmul"

    def sites(self, graph: Graph) -> Iterator[Node]:
        for node in call_nodes(graph, *PRODUCTS):
            left, right = operands(node)
            if len(shape(left)) >= 2 and len(shape(right)) >= 2 and (_diagonal(left) or _diagonal(right)):
                yield node

    def rewrite(self, graph: Graph, site: Node) -> Node:
        left, right = operands(site)
        if entries := _diagonal(left):
            return emit(graph, "mul.Tensor", emit(graph, "unsqueeze.default", entries, -1), right)
        entries = _diagonal(right)
        return emit(graph, "mul.Tensor", left, emit(graph, "unsqueeze.default", entries, -2))


def _diagonal(node: Any) -> Any:
    """The diagonal's entries, (..., n), when `node` is a square matrix (or a batch) that is zero elsewhere."""
    if is_op(node, "aten.diag.default") and len(shape(node.args[0])) == 1 and argument(node, "diagonal") == 0:
        return node.args[0]
    if is_op(node, "aten.diag_embed.default") and argument(node, "offset") == 0:
        rank = len(shape(node))
        dims = {argument(node, "dim1") % rank, argument(node, "dim2") % rank}
        return node.args[0] if dims == {rank - 2, rank - 1} else None
    if is_op(node, "aten.diagflat.default") and len(shape(node.args[0])) == 1 and argument(node, "offset") == 0:
        return node.args[0]
    return None


TECHNIQUE = DiagonalMatmul()
