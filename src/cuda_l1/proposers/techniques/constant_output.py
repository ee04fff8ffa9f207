"""Values that range analysis proves constant are filled in, and clamps that it proves idle go."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuda_l1.proposers.techniques.derived import mark
from cuda_l1.proposers.techniques.matching import emit, is_op, is_view, operands, shape, storage_root, tensor
from cuda_l1.proposers.techniques.ranges import Range, bounds, ranges
from cuda_l1.proposers.techniques.rewrite import Rewrite

if TYPE_CHECKING:
    from torch.fx import Graph, Node

CLAMPS = tuple(f"aten.{name}.default" for name in ("relu", "clamp", "clamp_min", "clamp_max", "hardtanh", "abs"))


class ConstantOutput(Rewrite):
    """What interval arithmetic proves constant is not computed: `softmax` over one element, `clamp(relu(x), max=0)`.

    Assumes finite arguments and weights and no overflow on the way: where forward yields NaN or infinities from them,
    the constant stands in their place.
    """

    name = "constant_output"

    def sites(self, graph: Graph) -> Iterator[Node]:
        found = ranges(graph)
        returned = {storage_root(n) for node in graph.nodes if node.op == "output" for n in node.all_input_nodes}
        for node in reversed(list(graph.nodes)):
            if node.op != "call_function" or not node.users:
                continue
            if _is_constant(node, found[node]) or (_is_idle(node, found) and storage_root(node) not in returned):
                yield node

    def rewrite(self, graph: Graph, site: Node) -> Node:
        low, high = ranges(graph)[site]
        if low != high:
            idle: Node = operands(site)[0]
            return idle
        value = tensor(site)
        constant = emit(graph, "full.default", list(shape(site)), low, dtype=value.dtype, device=value.device)
        mark([constant])
        return constant


def _is_constant(node: Node, bound: Range) -> bool:
    """Provably one finite number, and not a constant already."""
    if bound[0] != bound[1] or not math.isfinite(bound[0]) or is_view(node):
        return False
    return not is_op(node, "aten.full.default", "aten.zeros.default", "aten.ones.default")


def _is_idle(node: Node, found: dict[Node, Range]) -> bool:
    """A clamp whose limits its argument cannot pass."""
    if not is_op(node, *CLAMPS) or operands(node)[0] not in found:
        return False
    low, high = found[operands(node)[0]]
    if is_op(node, "aten.abs.default"):
        return low >= 0
    limits = bounds(node)
    return limits[0] <= low and high <= limits[1]


TECHNIQUE = ConstantOutput()
