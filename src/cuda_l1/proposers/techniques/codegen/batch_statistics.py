"""Batch normalisation in train mode, taken apart so that its statistics can be fused with what stands around it.

batch_norm(x, w, b, mean, var, training)  ->  batch_norm(x, w, b, None, None, training)
                                              mean.copy_((1 - m) mean + m x.mean), var.copy_(... x.var)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_l1.proposers.techniques.matching import FROZEN, argument, emit, op_name, shape, val

if TYPE_CHECKING:
    from torch.fx import Graph, Node

MOVABLE = "movable"
"""Key in `node.meta` of writes to memory that nothing else touches: they may stand anywhere behind what they read."""


def training_norms(graph: Graph) -> list[Node]:
    """Batch normalisations in train mode that update running statistics which nothing else touches."""
    return [node for node in graph.nodes if op_name(node) == "aten.batch_norm.default" and _updates(node)]


def _updates(node: Node) -> bool:
    x = val(argument(node, "input"))
    if x is None or not x.dtype.is_floating_point or node.meta.get(FROZEN) or not argument(node, "training"):
        return False
    return argument(node, "running_mean") is not None and argument(node, "running_var") is not None


def take_apart(graph: Graph) -> None:
    """Rewrite every such node; the graph computes what it did."""
    for node in training_norms(graph):
        with graph.inserting_before(node):
            x, weight, bias = (argument(node, name) for name in ("input", "weight", "bias"))
            eps, momentum = argument(node, "eps"), float(argument(node, "momentum"))
            call = emit(graph, "batch_norm.default", x, weight, bias, None, None, True, momentum, eps, False)
            dims = [dim for dim in range(len(shape(x))) if dim != 1]
            _update(graph, argument(node, "running_mean"), emit(graph, "mean.dim", x, dims), momentum)
            _update(graph, argument(node, "running_var"), emit(graph, "var.correction", x, dims), momentum)
        node.replace_all_uses_with(call)
        graph.erase_node(node)


def _update(graph: Graph, running: Node, current: Node, momentum: float) -> None:
    """running = (1 - momentum) running + momentum current, in place."""
    kept = emit(graph, "mul.Tensor", running, 1.0 - momentum)
    moved = emit(graph, "add.Tensor", kept, emit(graph, "mul.Tensor", current, momentum))
    emit(graph, "copy_.default", running, moved).meta[MOVABLE] = True
