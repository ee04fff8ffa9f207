"""Chains of element-wise operations and reductions become one generated kernel each: C++ on a CPU, Triton on a GPU."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from cuda_l1.proposers.techniques.codegen import cpp, triton
from cuda_l1.proposers.techniques.codegen.batch_statistics import MOVABLE, take_apart, training_norms
from cuda_l1.proposers.techniques.codegen.ir import Unsupported
from cuda_l1.proposers.techniques.codegen.kernel import Kernel, make_kernel
from cuda_l1.proposers.techniques.codegen.regions import Region, early_readers, find_regions
from cuda_l1.proposers.techniques.draft import Device, Draft
from cuda_l1.proposers.techniques.matching import FROZEN, generated, is_pure
from cuda_l1.proposers.techniques.normal_form import remove_unused

if TYPE_CHECKING:
    from torch.fx import Graph, Node

LONG = 64
"""Operations of a region; to look for the loops of a longer one takes tenths of a second."""


class Fusion:
    """Fuses element-wise operations, row reductions and moves of data between matrix products into single passes.

    Intermediate results of half precision stay in single precision; everything else is what the graph says.
    """

    name = "fusion"
    devices = frozenset({"cpu", "cuda"})
    stage = 30
    precision: Literal["same", "tf32", "relaxed"] = "same"

    def applies(self, draft: Draft) -> bool:
        """Whether at least one kernel would be written."""
        if draft.graph_module is None or not _can_compile(draft.device):
            return False
        graph = draft.graph_module.graph
        return bool(training_norms(graph)) or next(_kernels(graph, draft.device), None) is not None

    def apply(self, draft: Draft) -> None:
        """Write the kernels and replace their nodes by calls."""
        if draft.graph_module is None:
            return
        graph = draft.graph_module.graph
        take_apart(graph)
        found = list(_kernels(graph, draft.device))
        backend = cpp if draft.device == "cpu" else triton
        draft.use(backend.LOADER)
        draft.use(backend.python_source([kernel for _, kernel in found]))
        moved: dict[Node, Node] = {}
        for region, kernel in found:
            _replace(graph, region, kernel, moved)
        remove_unused(graph)
        draft.graph_module.recompile()


def _can_compile(device: Device) -> bool:
    """Whether candidates of this machine can be built at all; a GPU's torch brings Triton along."""
    return device == "cuda" or any(map(shutil.which, (os.environ.get("CXX", "g++"), "c++")))


def _kernels(graph: Graph, device: Device) -> Iterator[tuple[Region, Kernel]]:
    """Regions with their kernels; where none can be written, smaller regions are tried without the refused node."""
    refused: set[Node] = set()
    taken: set[Node] = set()
    number = 0
    while True:
        failed: set[Node] = set()
        for region in find_regions(graph, refused | taken):
            try:
                kernel = _written(region, number, device)
            except Unsupported as reason:
                failed |= _blame(region, reason)
                continue
            number += 1
            taken |= set(region.nodes)
            yield region, kernel
        if not failed:
            return
        refused |= failed


def _written(region: Region, index: int, device: Device) -> Kernel:
    """The kernel of a region, printed once to see that all of it has a text."""
    readers = early_readers(region.nodes[0].graph, set(region.nodes), region.nodes[-1])
    if not all(node.meta.get(MOVABLE) or (is_pure(node) and not node.meta.get(FROZEN)) for node in readers):
        raise Unsupported("a reader whose place in the program matters")
    backend = cpp if device == "cpu" else triton
    kernel = make_kernel(f"fused_{index}", region.nodes, region.outputs(), backend.SHORTEST_VECTOR)
    backend.python_source([kernel])
    return kernel


def _blame(region: Region, reason: Unsupported) -> set[Node]:
    """The node that a rule refused; else the region's last operation, of a long region an eighth, so that a smaller
    region is tried: of an unrolled loop hundreds would be."""
    node = getattr(reason, "node", None)
    if node in region.nodes:
        return {node}
    work = region.work()
    return set(work[-1:] if len(work) <= LONG else work[-len(work) // 8 :])


def _replace(graph: Graph, region: Region, kernel: Kernel, moved: dict[Node, Node]) -> None:
    """Put the call behind everything it reads, its readers behind it, and hand its results to them.

    `moved` maps outputs of regions that were replaced before to what stands for them now.
    """
    outputs = region.outputs()
    values = [node.meta["val"] for node in outputs]
    arguments = [moved.get(node, node) for node in kernel.nodes]
    with graph.inserting_after(max(region.nodes, key=list(graph.nodes).index)):
        call = generated(graph, kernel.name, *arguments, value=values[0] if len(values) == 1 else tuple(values))
    results = [call] if len(outputs) == 1 else _results(graph, call, outputs)
    inside = set(region.nodes)
    for node, result in zip(outputs, results, strict=True):
        node.replace_all_uses_with(result, delete_user_cb=lambda user: user not in inside)
        moved[node] = result
    for node in early_readers(graph, {call, *results}, results[-1]):
        results[-1].append(node)
        results.append(node)


def _results(graph: Graph, call: Node, outputs: Sequence[Node]) -> list[Node]:
    """One node per result of a call with several."""
    import operator

    results: list[Node] = []
    for index, node in enumerate(outputs):
        with graph.inserting_after(results[-1] if results else call):
            result = graph.call_function(operator.getitem, (call, index))
        result.meta["val"] = node.meta["val"]
        results.append(result)
    return results


TECHNIQUE = Fusion()
