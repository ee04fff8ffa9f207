"""Bases of the techniques that replace one call of the graph at a time, or a group of calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from cuda_l1.proposers.techniques.draft import Draft
from cuda_l1.proposers.techniques.normal_form import propagate, remove_unused

if TYPE_CHECKING:
    from torch.fx import Graph, Node

MOST_REWRITES = 1000
"""No forward has so many sites; a rule that reaches it matches its own result."""


class Rewrite:
    """A rule `sites -> rewrite`, applied until it finds no more sites."""

    name: str
    devices: frozenset[str] = frozenset({"cpu", "cuda"})
    stage: int = 10
    precision: Literal["same", "tf32", "relaxed"] = "same"

    def sites(self, graph: Graph) -> Iterator[Node]:
        """The nodes that `rewrite` can replace in the graph as it is."""
        raise NotImplementedError

    def rewrite(self, graph: Graph, site: Node) -> Node:
        """Insert what replaces `site` (the insertion point is just before it) and return the node of equal value."""
        raise NotImplementedError

    def applies(self, draft: Draft) -> bool:
        """Whether the graph holds at least one site."""
        return draft.graph_module is not None and next(self.sites(draft.graph_module.graph), None) is not None

    def apply(self, draft: Draft) -> None:
        """Rewrite every site, those that rewriting brings forth included."""
        if draft.graph_module is None:
            return
        graph = draft.graph_module.graph
        for _ in range(MOST_REWRITES):
            site = next(self.sites(graph), None)
            if site is None:
                return
            with graph.inserting_before(site):
                result = self.rewrite(graph, site)
            site.replace_all_uses_with(result)
            graph.erase_node(site)
            remove_unused(graph)


class GroupRewrite:
    """A rule that replaces several calls at once, `groups -> merge`, applied until it finds no more groups."""

    name: str
    devices: frozenset[str] = frozenset({"cpu", "cuda"})
    stage: int = 10
    precision: Literal["same", "tf32", "relaxed"] = "same"

    def groups(self, graph: Graph) -> Iterator[list[Node]]:
        """Calls that one `merge` replaces, in the order of the graph."""
        raise NotImplementedError

    def merge(self, graph: Graph, group: list[Node]) -> list[Node]:
        """Insert what replaces the group (the insertion point is just before its first call): one node for each."""
        raise NotImplementedError

    def applies(self, draft: Draft) -> bool:
        """Whether the graph holds at least one group."""
        return draft.graph_module is not None and next(self.groups(draft.graph_module.graph), None) is not None

    def apply(self, draft: Draft) -> None:
        """Merge every group; views of the results adapt to the strides that they now have."""
        if draft.graph_module is None:
            return
        graph = draft.graph_module.graph
        for _ in range(MOST_REWRITES):
            group = next(self.groups(graph), None)
            if group is None:
                break
            with graph.inserting_before(group[0]):
                results = self.merge(graph, group)
            for node, result in zip(group, results, strict=True):
                node.replace_all_uses_with(result)
                graph.erase_node(node)
            remove_unused(graph)
        propagate(graph)
