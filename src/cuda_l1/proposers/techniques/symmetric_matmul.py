"""A product that is symmetric by construction is computed on one side of the diagonal and mirrored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuda_l1.proposers.techniques.draft import Draft
from cuda_l1.proposers.techniques.matching import call_nodes, generated, is_float, operands, shape
from cuda_l1.proposers.techniques.rewrite import Rewrite
from cuda_l1.proposers.techniques.structure import BLOCK_SIZE, LEAST_ROWS, PRODUCTS, are_transposes

if TYPE_CHECKING:
    from torch.fx import Graph, Node

HELPER = '''
def symmetric_matmul(a, b):
    """a @ b for a product known to be symmetric: blocks above the diagonal are copies of those below."""
    rows = a.shape[0]
    block = block_size(a)
    out = a.new_empty(rows, rows)
    for top in range(0, rows, block):
        bottom = min(top + block, rows)
        torch.mm(a[top:bottom], b[:, :bottom], out=out[top:bottom, :bottom])
        out[:top, top:bottom] = out[top:bottom, :top].t()
    return out
'''


class SymmetricMatmul(Rewrite):
    """`x @ x^T`, and the square of a symmetric matrix, are computed up to the diagonal and mirrored."""

    name = "symmetric_matmul"

    def sites(self, graph: Graph) -> Iterator[Node]:
        for node in call_nodes(graph, *PRODUCTS):
            left, right = operands(node)[:2]
            if (
                len(shape(node)) == 2
                and is_float(node)
                and shape(node)[0] >= LEAST_ROWS
                and are_transposes(left, right)
            ):
                yield node

    def rewrite(self, graph: Graph, site: Node) -> Node:
        return generated(graph, "symmetric_matmul", *operands(site)[:2], value=site.meta["val"])

    def apply(self, draft: Draft) -> None:
        """Rewrite every product with enough rows for several blocks."""
        draft.use(BLOCK_SIZE)
        draft.use(HELPER)
        super().apply(draft)


TECHNIQUE = SymmetricMatmul()
