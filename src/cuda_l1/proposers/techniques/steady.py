"""What in a graph stays as it is from call to call, as long as no weight changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.matching import (
    FROZEN,
    GENERATED,
    is_literal,
    is_pure,
    numel,
    op_name,
    storage_root,
    val,
    writes,
)

if TYPE_CHECKING:
    from torch.fx import Graph, Node

SCRATCH = "scratch"
"""Key in `node.meta` of kept memory whose contents do not outlive a call: forward may write to it."""

MOST_KEPT_ELEMENTS = 1 << 28
"""Nothing larger is kept alive between calls."""


def steady(graph: Graph) -> dict[Node, bool]:
    """Calls whose value changes only with the weights -> whether any weight is involved (else literals alone).

    Excluded: whatever reads memory that the graph writes to, random draws, and results of forward itself.
    """
    pinned = {storage_root(target) for node in graph.nodes for target in writes(node)}
    pinned |= {storage_root(node) for node in _returned(graph)}
    pinned -= {node for node in graph.nodes if node.meta.get(SCRATCH)}
    found: dict[Node, bool] = {}
    for node in graph.nodes:
        if node.op == "get_attr" and not str(node.target).startswith(GENERATED) and node not in pinned:
            found[node] = not is_literal(node.target)
        elif _keepable(node) and storage_root(node) not in pinned and found.keys() >= set(node.all_input_nodes):
            found[node] = any(found[source] for source in node.all_input_nodes)
    return found


def _keepable(node: Node) -> bool:
    if node.op != "call_function" or not is_pure(node) or node.meta.get(FROZEN) or op_name(node) == "call":
        return False
    return val(node) is None or numel(node) <= MOST_KEPT_ELEMENTS


def _returned(graph: Graph) -> list[Any]:
    output = next(node for node in graph.nodes if node.op == "output")
    return list(output.all_input_nodes)
