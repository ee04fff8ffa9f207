"""Several linear maps of one input (query, key, value; gate, up) are one wider linear map, its weights kept packed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.derived import mark
from cuda_l1.proposers.techniques.matching import (
    argument,
    call_nodes,
    emit,
    emit_item,
    operands,
    shape,
    storage_root,
    tensor,
)
from cuda_l1.proposers.techniques.rewrite import GroupRewrite

if TYPE_CHECKING:
    from torch.fx import Graph, Node


class PackedLinear(GroupRewrite):
    """Linear maps of the same input become one with stacked weights, packed anew when one of them changes."""

    name = "packed_linear"

    def groups(self, graph: Graph) -> Iterator[list[Node]]:
        returned = {storage_root(n) for node in graph.nodes if node.op == "output" for n in node.all_input_nodes}
        found: dict[Any, list[Node]] = {}
        for node in call_nodes(graph, "aten.linear.default"):
            weights = [other for other in operands(node)[1:] if other is not None]
            if node not in returned and all(weight.op == "get_attr" for weight in weights):
                found.setdefault((operands(node)[0], tensor(weights[0]).dtype), []).append(node)
        for group in found.values():
            if len({operands(node)[1] for node in group}) == len(group) > 1:
                yield group

    def merge(self, graph: Graph, group: list[Node]) -> list[Node]:
        weights = [operands(node)[1] for node in group]
        packed = emit(graph, "cat.default", weights)
        biases = [argument(node, "bias") for node in group]
        bias = _packed_bias(graph, weights, biases) if any(bias is not None for bias in biases) else None
        mark([packed] if bias is None else [packed, bias])
        joint = emit(graph, "linear.default", operands(group[0])[0], packed, bias)
        parts = emit(graph, "split_with_sizes.default", joint, [shape(weight)[0] for weight in weights], -1)
        return [emit_item(graph, parts, index) for index in range(len(group))]


def _packed_bias(graph: Graph, weights: list[Any], biases: list[Any]) -> Node:
    """The biases end to end, zeros for a map that has none."""
    parts = []
    for weight, bias in zip(weights, biases, strict=True):
        like = tensor(weight)
        zeros = [shape(weight)[0]]
        parts.append(bias or emit(graph, "zeros.default", zeros, dtype=like.dtype, device=like.device))
    return emit(graph, "cat.default", parts)


TECHNIQUE = PackedLinear()
