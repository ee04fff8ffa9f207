"""Chains of element-wise operations and reductions become one generated kernel each: C++ on a CPU, Triton on a GPU."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from cuda_l1.proposers.techniques.codegen import cpp, triton
from cuda_l1.proposers.techniques.codegen.batch_statistics import take_apart, training_norms
from cuda_l1.proposers.techniques.codegen.calls import functions, replace
from cuda_l1.proposers.techniques.codegen.kernel import Kernel, make_kernel
from cuda_l1.proposers.techniques.codegen.regions import Region
from cuda_l1.proposers.techniques.draft import Device, Draft
from cuda_l1.proposers.techniques.normal_form import remove_unused

if TYPE_CHECKING:
    from torch.fx import Graph, Node


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
        if draft.graph_module is None or not can_compile(draft.device):
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
            replace(graph, region, kernel, moved)
        remove_unused(graph)
        draft.graph_module.recompile()


def can_compile(device: Device) -> bool:
    """Whether candidates of this machine can be built at all; a GPU's torch brings Triton along."""
    return device == "cuda" or any(map(shutil.which, (os.environ.get("CXX", "g++"), "c++")))


def _kernels(graph: Graph, device: Device) -> Iterator[tuple[Region, Kernel]]:
    return functions(graph, lambda region, name: _written(region, name, device))


def _written(region: Region, name: str, device: Device) -> Kernel:
    """The kernel of a region, printed once to see that all of it has a text."""
    backend = cpp if device == "cpu" else triton
    kernel = make_kernel(name, region.nodes, region.outputs(), backend.SHORTEST_VECTOR)
    backend.python_source([kernel])
    return kernel


TECHNIQUE = Fusion()
