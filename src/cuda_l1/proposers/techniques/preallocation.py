"""Large intermediates are written into memory that is kept between calls, not allocated and given back in each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from cuda_l1.proposers.techniques.derived import mark
from cuda_l1.proposers.techniques.lifetimes import Lifetimes
from cuda_l1.proposers.techniques.matching import emit, op_name, tensor
from cuda_l1.proposers.techniques.steady import SCRATCH

if TYPE_CHECKING:
    import torch
    from torch.fx import Graph, Node

    from cuda_l1.proposers.techniques.draft import Draft

LEAST_BYTES = 1 << 20
"""Smaller blocks come from the allocator's free lists for less than the bookkeeping costs."""

WITH_OUT = {
    f"aten.{name}.{overload}": f"{name}.{out}"
    for overload, out, names in (
        ("default", "out", "mm bmm matmul addmm baddbmm linear exp sigmoid tanh sqrt rsqrt log neg abs sin cos"),
        ("default", "out", "gelu silu cumsum maximum minimum cat"),
        ("Tensor", "out", "add sub mul div"),
        ("int", "int_out", "softmax"),
    )
    for name in names.split()
}
"""Calls that take `out=` -> the overload that does."""


class Preallocation:
    """Large intermediates, never results, live in buffers that are kept between calls.

    A module built so must not run in two threads at once.
    """

    name = "preallocation"
    devices = frozenset({"cpu", "cuda"})
    stage = 40
    precision: Literal["same"] = "same"

    def applies(self, draft: Draft) -> bool:
        """Whether there is a large intermediate that can be written into a buffer."""
        assert draft.graph_module is not None
        return bool(_sites(draft.graph_module.graph))

    def apply(self, draft: Draft) -> None:
        """Give each such intermediate a buffer; a buffer serves again once its contents were read for the last time."""
        assert draft.graph_module is not None
        graph = draft.graph_module.graph
        lifetimes = Lifetimes(graph)
        free_after: list[tuple[Node, int]] = []
        for node in _sites(graph):
            buffer = _free_buffer(free_after, node, lifetimes) or _new_buffer(graph, node)
            node.target = _overload(WITH_OUT[op_name(node)])
            node.kwargs = {**node.kwargs, "out": buffer}
            free_after = [entry for entry in free_after if entry[0] is not buffer]
            free_after.append((buffer, lifetimes.last_read[node]))


def _sites(graph: Graph) -> list[Node]:
    lifetimes = Lifetimes(graph)
    return [node for node in graph.nodes if op_name(node) in WITH_OUT and _fits(node, lifetimes)]


def _fits(node: Node, lifetimes: Lifetimes) -> bool:
    """A large contiguous intermediate of forward's own that is read, and neither returned nor written to."""
    if not lifetimes.owned(node) or node in lifetimes.returned or node not in lifetimes.last_read:
        return False
    value = tensor(node)
    return value.is_contiguous() and value.numel() * value.element_size() >= LEAST_BYTES


def _free_buffer(free_after: list[tuple[Node, int]], node: Node, lifetimes: Lifetimes) -> Node | None:
    """A buffer of the same form whose contents nobody reads any more when `node` is computed."""
    for buffer, last_read in free_after:
        if _form(buffer) == _form(node) and last_read < lifetimes.order[node]:
            return buffer
    return None


def _form(node: Node) -> Any:
    return tuple(tensor(node).shape), tensor(node).dtype


def _new_buffer(graph: Graph, node: Node) -> Node:
    value = tensor(node)
    first = next(candidate for candidate in graph.nodes if candidate.op == "call_function")
    with graph.inserting_before(first):
        shape, dtype, device = list(value.shape), value.dtype, value.device
        buffer = emit(graph, "empty.memory_format", shape, dtype=dtype, device=device)
    buffer.meta[SCRATCH] = True
    mark([buffer])
    return buffer


def _overload(name: str) -> torch._ops.OpOverload[Any, Any]:
    import torch

    base, overload = name.split(".")
    found: torch._ops.OpOverload[Any, Any] = getattr(getattr(torch.ops.aten, base), overload)
    return found


TECHNIQUE = Preallocation()
