"""Chains of element-wise operations and reductions of rows become short Python functions that are compiled on a CPU."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from cuda_l1.prelude.traced import TRACED
from cuda_l1.proposers.techniques.codegen.calls import functions, replace
from cuda_l1.proposers.techniques.codegen.traced import TracedFunction, traced_function
from cuda_l1.proposers.techniques.draft import Draft
from cuda_l1.proposers.techniques.fusion import can_compile
from cuda_l1.proposers.techniques.matching import emit
from cuda_l1.proposers.techniques.normal_form import remove_unused

if TYPE_CHECKING:
    from torch.fx import Graph, Node

    from cuda_l1.proposers.techniques.codegen.regions import Region


class TracedLoops:
    """Writes element-wise operations and reductions over the last dimensions as traced functions, one pass each.

    They say less than the kernels of `fusion` do (float32 alone, no moves of data), in a seventh of the text: sizes and
    strides are read from the tensors of a call.
    """

    name = "traced_loops"
    devices = frozenset({"cpu"})
    stage = 30
    precision: Literal["same"] = "same"

    def applies(self, draft: Draft) -> bool:
        """Whether at least one function would be written."""
        if draft.graph_module is None or not can_compile(draft.device):
            return False
        return next(_functions(draft.graph_module.graph), None) is not None

    def apply(self, draft: Draft) -> None:
        """Write the functions and replace their nodes by calls."""
        if draft.graph_module is None:
            return
        graph = draft.graph_module.graph
        found = list(_functions(graph))
        draft.use(TRACED)
        draft.use("\n\n".join(dict.fromkeys(function.text for _, function in found)))
        moved: dict[Node, Node] = {}
        for region, function in found:
            replace(graph, region, _with_views(graph, region, function, moved), moved)
        remove_unused(graph)
        draft.graph_module.recompile()


def _functions(graph: Graph) -> Iterator[tuple[Region, TracedFunction]]:
    """Regions with their functions; those that are alike are one."""
    known: dict[str, TracedFunction] = {}

    def write(region: Region, name: str) -> TracedFunction:
        function = traced_function(name, region)
        first = known.setdefault(function.alike(), function)
        return dataclasses.replace(function, name=first.name, text=first.text)

    return functions(graph, write)


def _with_views(graph: Graph, region: Region, function: TracedFunction, moved: dict[Node, Node]) -> TracedFunction:
    """The function with views as arguments where it wants them: of weights per channel, to stand beside a batch."""
    nodes = [moved.get(node, node) for node in function.nodes]
    for place, shape in function.views.items():
        sizes = [-1 if size > 1 and size == math.prod(shape) else size for size in shape]
        with graph.inserting_before(next(node for node in region.nodes if nodes[place] in node.all_input_nodes)):
            nodes[place] = emit(graph, "view.default", nodes[place], sizes)
    return dataclasses.replace(function, nodes=nodes)


TECHNIQUE = TracedLoops()
