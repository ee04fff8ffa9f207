"""Which nodes of a graph become one kernel: convex groups of operations that have a rule."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.codegen import (
    lower_activations,
    lower_losses,
    lower_pointwise,
    lower_reduce,
    lower_views,
)
from cuda_l1.proposers.techniques.codegen.lowering import HEAVY, supported
from cuda_l1.proposers.techniques.matching import FROZEN, UNSIZED, argument, is_pure, is_view, op_name, val

if TYPE_CHECKING:
    from torch.fx import Graph, Node

RULE_MODULES = (lower_activations, lower_losses, lower_pointwise, lower_reduce, lower_views)
"""Imported so that their rules are registered."""

FREE = frozenset({"aten.dropout.default", "aten.contiguous.default", "aten.clone.default", "aten.detach.default",
                  "aten.alias.default", "aten.feature_dropout.default", "aten.zeros_like.default",
                  "aten.ones_like.default", "aten.full_like.default", "aten.new_zeros.default",
                  "aten.new_ones.default", "aten.new_full.default"})  # fmt: skip
"""Copies and constants: a region of these alone is not worth a kernel, and at its ends PyTorch makes them."""


@dataclass(eq=False)
class Region:
    """Nodes that are computed together, in graph order."""

    nodes: list[Node] = field(default_factory=list)

    def work(self) -> list[Node]:
        """Nodes that compute something: not views, constants or copies."""
        return [node for node in self.nodes if _computes(node)]

    def outputs(self) -> list[Node]:
        """Tensor nodes that something outside the region reads."""
        inside = set(self.nodes)
        return [node for node in self.nodes if val(node) is not None and any(u not in inside for u in node.users)]


def _computes(node: Node) -> bool:
    if op_name(node) == "getitem" or not node.all_input_nodes:
        return False
    if op_name(node) in FREE:
        return False
    return converts(node) if is_view(node) else True


def converts(node: Node) -> bool:
    """Whether a move of data changes its dtype, which is a pass of its own."""
    before, after = val(node.all_input_nodes[0]), val(node)
    return before is not None and after is not None and before.dtype != after.dtype


def worthwhile(region: Region) -> bool:
    """At least two operations, or one that PyTorch runs in several passes."""
    work = region.work()
    return len(work) >= 2 or any(op_name(node) in HEAVY or _own_statistics(node) for node in work)


def _own_statistics(node: Node) -> bool:
    return op_name(node) == "aten.batch_norm.default" and bool(argument(node, "training"))


def find_regions(graph: Graph, refused: frozenset[Node] | set[Node] = frozenset()) -> list[Region]:
    """Regions that are worth a kernel, in graph order. `refused` nodes stay outside."""
    if any("autocast" in op_name(node) for node in graph.nodes):
        return []  # a call would be moved across the borders of the mode
    fusable = [node for node in graph.nodes if node not in refused and _fusable(node)]
    ancestors = _ancestors(graph)
    homes: dict[Node, Region] = {}
    for node in fusable:
        _join(node, homes, ancestors)
    regions = list(dict.fromkeys(homes.values()))
    for region in regions:
        _trim(region)
    return [region for region in regions if worthwhile(region) and region.outputs()]


def _fusable(node: Node) -> bool:
    if node.op != "call_function" or node.meta.get(FROZEN) or node.meta.get(UNSIZED):
        return False
    if op_name(node) == "getitem":
        source: Any = node.args[0]
        return source.op == "call_function" and _fusable(source)
    return supported(node) and is_pure(node)


def _ancestors(graph: Graph) -> dict[Node, frozenset[Node]]:
    """Every node that each node is computed from."""
    found: dict[Node, frozenset[Node]] = {}
    for node in graph.nodes:
        parents = node.all_input_nodes
        found[node] = frozenset(parents).union(*(found[parent] for parent in parents))
    return found


def _join(node: Node, homes: dict[Node, Region], ancestors: dict[Node, frozenset[Node]]) -> None:
    """Put a node into the region of its inputs, or of what reads the same inputs, uniting regions where that leaves
    the graph without a cycle."""
    region = Region([node])
    parents = node.all_input_nodes
    candidates = dict.fromkeys(homes[parent] for parent in parents if parent in homes)
    if _computes(node):
        siblings = [user for parent in parents if parent not in homes for user in parent.users]
        candidates |= dict.fromkeys(homes[user] for user in siblings if user in homes and _computes(user))
    for other in candidates:
        united = [*other.nodes, *region.nodes]
        if other is not region and _convex(united, ancestors):
            region.nodes = united
    if len(region.nodes) > 1:
        order = {found: index for index, found in enumerate(node.graph.nodes)}
        region.nodes.sort(key=order.__getitem__)
    for member in region.nodes:
        homes[member] = region


def _convex(nodes: Iterable[Node], ancestors: dict[Node, frozenset[Node]]) -> bool:
    """Whether no path leaves the group and comes back."""
    inside = set(nodes)
    outside = {parent for node in inside for parent in node.all_input_nodes if parent not in inside}
    return not any(ancestors[parent] & inside for parent in outside)


def _trim(region: Region) -> None:
    """Leave views and constants at the region's ends to PyTorch: they cost nothing there."""
    while True:
        inside = set(region.nodes)
        loose = [node for node in region.nodes if not _computes(node) and _at_an_end(node, inside)]
        if not loose:
            return
        region.nodes = [node for node in region.nodes if node not in loose]


def _at_an_end(node: Node, inside: set[Node]) -> bool:
    """A view or copy that nothing inside reads."""
    return not any(user in inside for user in node.users)


def early_readers(graph: Graph, sources: set[Node], end: Node) -> list[Node]:
    """What depends on `sources` but stands before `end`, in graph order: it has to move behind a call placed there."""
    late, found = set(sources), []
    for node in graph.nodes:
        if node is end:
            break
        if node not in sources and any(parent in late for parent in node.all_input_nodes):
            late.add(node)
            found.append(node)
    return found
