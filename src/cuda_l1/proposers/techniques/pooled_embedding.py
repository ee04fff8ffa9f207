"""The sum or mean of looked-up embeddings is an embedding bag: the single embeddings are never stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuda_l1.proposers.techniques.derived import mark
from cuda_l1.proposers.techniques.matching import (
    argument,
    call_nodes,
    emit,
    emit_item,
    is_op,
    only_user,
    operands,
    shape,
)
from cuda_l1.proposers.techniques.rewrite import Rewrite

if TYPE_CHECKING:
    from torch.fx import Graph, Node

MODES = {"aten.sum.dim_IntList": 0, "aten.mean.dim": 1, "aten.amax.default": 2}


class PooledEmbedding(Rewrite):
    """`embedding(i, W).mean(1)` for indices (bags, entries) becomes `embedding_bag`; sums and maxima alike."""

    name = "pooled_embedding"

    def sites(self, graph: Graph) -> Iterator[Node]:
        for node in call_nodes(graph, *MODES):
            source = operands(node)[0]
            if is_op(source, "aten.embedding.default") and only_user(source) is node and _over_entries(node, source):
                yield node

    def rewrite(self, graph: Graph, site: Node) -> Node:
        weight, indices = operands(operands(site)[0])[:2]
        bags, entries = shape(indices)
        like = indices.meta["val"]
        offsets = emit(graph, "arange.start_step", 0, bags * entries, entries, dtype=like.dtype, device=like.device)
        mark([offsets])
        flat = emit(graph, "reshape.default", indices, [-1])
        name = "embedding_bag.default"
        bag = emit(graph, name, weight, flat, offsets, False, MODES[str(site.target)], False, None, False)
        pooled = emit_item(graph, bag, 0)
        return emit(graph, "unsqueeze.default", pooled, 1) if argument(site, "keepdim") else pooled


def _over_entries(node: Node, source: Node) -> bool:
    """Indices (bags, entries), reduced over the entries alone, without a change of dtype."""
    if len(shape(operands(source)[1])) != 2 or 0 in shape(operands(source)[1]):
        return False
    names = [parameter.name for parameter in node.target._schema.arguments]  # type: ignore[union-attr]
    dims = argument(node, "dim")
    plain = "dtype" not in names or argument(node, "dtype") is None
    return plain and bool(dims) and [dim % 3 for dim in dims] == [1]


TECHNIQUE = PooledEmbedding()
