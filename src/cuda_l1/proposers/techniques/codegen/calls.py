"""Regions of a graph become calls of functions that are written for them, as many as can be."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from cuda_l1.proposers.techniques.codegen.batch_statistics import MOVABLE
from cuda_l1.proposers.techniques.codegen.ir import Unsupported
from cuda_l1.proposers.techniques.codegen.regions import Region, early_readers, find_regions
from cuda_l1.proposers.techniques.matching import FROZEN, GENERATED, generated, is_pure

if TYPE_CHECKING:
    from torch.fx import Graph, Node

LONG = 64
"""Operations of a region; to look for the loops of a longer one takes tenths of a second."""

_NAME = "fused_"


class Function(Protocol):
    """What is written for a region: its name and the graph nodes it is called with."""

    @property
    def name(self) -> str: ...

    @property
    def nodes(self) -> list[Node]: ...


F = TypeVar("F", bound=Function)


def functions(graph: Graph, write: Callable[[Region, str], F]) -> Iterator[tuple[Region, F]]:
    """Regions with what `write` makes of them, given a name that the graph does not call yet; where it raises
    Unsupported, smaller regions are tried without what is to blame."""
    outside: set[Node] = set()
    names = {str(node.target) for node in graph.nodes if str(node.target).startswith(GENERATED + _NAME)}
    while True:
        failed: set[Node] = set()
        taken: set[Node] = set()
        for region in find_regions(graph, outside):
            try:
                _require_movable(region)
                function = write(region, f"{_NAME}{len(names)}")
            except Unsupported as reason:
                failed |= _blame(region, reason)
                continue
            names.add(GENERATED + function.name)
            taken |= set(region.nodes)
            yield region, function
        if not failed:
            return
        outside |= taken | failed


def _require_movable(region: Region) -> None:
    readers = early_readers(region.nodes[0].graph, set(region.nodes), region.nodes[-1])
    if not all(node.meta.get(MOVABLE) or (is_pure(node) and not node.meta.get(FROZEN)) for node in readers):
        raise Unsupported("a reader whose place in the program matters")


def _blame(region: Region, reason: Unsupported) -> set[Node]:
    """The `nodes` that the reason names; else the region's last operation, of a long region an eighth, so that a
    smaller region is tried: of an unrolled loop hundreds would be."""
    named: set[Node] = getattr(reason, "nodes", set()) & set(region.nodes)
    if named:
        return named
    work = region.work()
    return set(work[-1:] if len(work) <= LONG else work[-len(work) // 8 :])


def replace(graph: Graph, region: Region, function: Function, moved: dict[Node, Node]) -> None:
    """Put the call behind everything it reads, its readers behind it, and hand its results to them.

    `moved` maps outputs of regions that were replaced before to what stands for them now.
    """
    outputs = region.outputs()
    values = [node.meta["val"] for node in outputs]
    arguments = [moved.get(node, node) for node in function.nodes]
    with graph.inserting_before(max(region.nodes, key=list(graph.nodes).index).next):
        call = generated(graph, function.name, *arguments, value=values[0] if len(values) == 1 else tuple(values))
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
    results: list[Node] = []
    for index, node in enumerate(outputs):
        with graph.inserting_after(results[-1] if results else call):
            result = graph.call_function(operator.getitem, (call, index))
        result.meta["val"] = node.meta["val"]
        results.append(result)
    return results
