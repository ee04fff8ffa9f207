"""Products of triangular matrices skip the blocks that are zero."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.draft import Draft
from cuda_l1.proposers.techniques.matching import (
    argument,
    call_nodes,
    generated,
    is_float,
    is_op,
    only_user,
    operands,
    shape,
)
from cuda_l1.proposers.techniques.rewrite import Rewrite
from cuda_l1.proposers.techniques.structure import BLOCK_SIZE, LEAST_ROWS, PRODUCTS, Triangle, triangle

if TYPE_CHECKING:
    from torch.fx import Graph, Node

HELPER = '''
def triangular_matmul(a, b, a_side, b_side, out_side):
    """a @ b in blocks, without those that are zero by `a_side` and `b_side` ("lower", "upper" or "").

    With `out_side` only that triangle of the product is computed; the rest is zero.
    """
    rows, inner, columns = a.shape[0], a.shape[1], b.shape[1]
    has_zeros = out_side or (a_side and b_side) or rows != inner or inner != columns
    out = a.new_zeros(rows, columns) if has_zeros else a.new_empty(rows, columns)
    height = block_size(a) if a_side or out_side else rows
    width = block_size(a) if b_side or out_side else columns
    for top in range(0, rows, height):
        bottom = min(top + height, rows)
        for left in range(0, columns, width):
            right = min(left + width, columns)
            if (out_side == "lower" and left >= bottom) or (out_side == "upper" and right <= top):
                continue
            start = max(top if a_side == "upper" else 0, left if b_side == "lower" else 0)
            stop = min(bottom if a_side == "lower" else inner, right if b_side == "upper" else inner, inner)
            if start < stop:
                torch.mm(a[top:bottom, start:stop], b[start:stop, left:right], out=out[top:bottom, left:right])
    if out_side:
        (torch.tril if out_side == "lower" else torch.triu)(out, out=out)
    return out
'''


class TriangularMatmul(Rewrite):
    """`tril(A) @ B`, `A @ triu(B)`, products of two triangles and `tril(A @ B)` leave out their zero blocks.

    Assumes finite operands: zero times infinity elsewhere in a block is not computed.
    """

    name = "triangular_matmul"

    def sites(self, graph: Graph) -> Iterator[Node]:
        for node in call_nodes(graph, *PRODUCTS, "aten.tril.default", "aten.triu.default"):
            if _sides(node) is not None:
                yield node

    def rewrite(self, graph: Graph, site: Node) -> Node:
        found = _sides(site)
        assert found is not None
        left, right, sides = found
        return generated(graph, "triangular_matmul", left, right, *sides, value=site.meta["val"])

    def apply(self, draft: Draft) -> None:
        """Rewrite every product with enough rows for several blocks."""
        draft.use(BLOCK_SIZE)
        draft.use(HELPER)
        super().apply(draft)


def _sides(node: Node) -> tuple[Any, Any, tuple[Triangle, Triangle, Triangle]] | None:
    """(a, b, triangles of a, b and the product) where any of the three saves work."""
    product, out = node, ""
    if is_op(node, "aten.tril.default", "aten.triu.default"):
        product = operands(node)[0]
        if argument(node, "diagonal") != 0 or not is_op(product, *PRODUCTS) or only_user(product) is not node:
            return None
        out = "lower" if is_op(node, "aten.tril.default") else "upper"
    elif any(is_op(user, "aten.tril.default", "aten.triu.default") and _sides(user) for user in node.users):
        return None
    left, right = operands(product)[:2]
    if len(shape(left)) != 2 or len(shape(right)) != 2 or not is_float(node) or min(shape(node)) < LEAST_ROWS:
        return None
    sides: Any = (triangle(left), triangle(right), out)
    return (left, right, sides) if any(sides) else None


TECHNIQUE = TriangularMatmul()
