"""Who owns the memory of an intermediate, and when it is read for the last time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.matching import FROZEN, is_view, op_name, val

if TYPE_CHECKING:
    from torch.fx import Graph, Node


class Lifetimes:
    """Memory of one graph; rewriting the graph makes it stale, but for what `takes_over` is told."""

    def __init__(self, graph: Graph) -> None:
        self.order = {node: index for index, node in enumerate(graph.nodes)}
        self._root: dict[Any, Any] = {}
        for node in self.order:
            source = node.args[0] if is_view(node) else node
            self._root[node] = self._root.get(source, source)
        output = next(node for node in graph.nodes if node.op == "output")
        self.returned = {self.root(node) for node in output.all_input_nodes}
        self.last_read = {self.root(source): self.order[node] for node in self.order for source in node.all_input_nodes}

    def root(self, node: Any) -> Any:
        """The node that owns the memory this one may look into, as `storage_root` finds it."""
        while (owner := self._root.get(node, node)) is not node:
            self._root[node] = self._root.get(owner, owner)  # long chains of calls in place are walked once
            node = owner
        return node

    def takes_over(self, node: Node, owner: Any) -> None:
        """`node`, which owned its memory, writes into that of `owner` from now on."""
        self._root[node] = owner
        self.last_read[owner] = max(self.last_read.get(owner, -1), self.last_read.get(node, -1))
        if node in self.returned:
            self.returned.add(owner)

    def owned(self, node: Any) -> bool:
        """Whether forward made the memory of this tensor in this call, for nobody else: no view, no kept value."""
        if getattr(node, "op", "") != "call_function" or val(node) is None or node.meta.get(FROZEN):
            return False
        return op_name(node).startswith("aten.") and not is_view(node)

    def dies_at(self, node: Any, reader: Node) -> bool:
        """Whether `reader` is the last to read the memory that `node` owns, and nobody returns it."""
        return node not in self.returned and self.last_read.get(node) == self.order[reader]
