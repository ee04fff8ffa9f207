"""Who owns the memory of an intermediate, and when it is read for the last time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.matching import FROZEN, is_view, op_name, storage_root, val, writes

if TYPE_CHECKING:
    from torch.fx import Graph, Node


class Lifetimes:
    """Memory of one graph as it is; rewriting the graph makes it stale."""

    def __init__(self, graph: Graph) -> None:
        self.order = {node: index for index, node in enumerate(graph.nodes)}
        output = next(node for node in graph.nodes if node.op == "output")
        self.returned = {storage_root(node) for node in output.all_input_nodes}
        self.last_read: dict[Any, int] = {}
        self.written: set[Any] = set()
        for node in graph.nodes:
            for source in node.all_input_nodes:
                self.last_read[storage_root(source)] = self.order[node]
            self.written |= {storage_root(target) for target in writes(node)}

    def owned(self, node: Any) -> bool:
        """Whether forward made the memory of this tensor in this call, for nobody else: no view, no kept value."""
        if getattr(node, "op", "") != "call_function" or val(node) is None or node.meta.get(FROZEN):
            return False
        return op_name(node).startswith("aten.") and not is_view(node) and storage_root(node) is node

    def dies_at(self, node: Any, reader: Node) -> bool:
        """Whether `reader` is the last to read the memory that `node` owns, and nobody returns it."""
        return node not in self.returned and self.last_read.get(node) == self.order[reader]
