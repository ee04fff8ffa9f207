"""Convolutions in channels-last layout: inputs converted once at the entry, weights once per change of weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from cuda_l1.proposers.techniques.derived import mark
from cuda_l1.proposers.techniques.matching import call_nodes, emit, operands, shape, tensor
from cuda_l1.proposers.techniques.normal_form import propagate

if TYPE_CHECKING:
    import torch
    from torch.fx import Graph, Node

    from cuda_l1.proposers.techniques.draft import Draft

CONVOLUTIONS = tuple(
    f"aten.{name}"
    for name in ("conv2d.default", "conv2d.padding", "conv_transpose2d.input", "conv3d.default", "conv3d.padding")
)


class ChannelsLast:
    """Convolutions read and write channels-last; what follows keeps the layout that it is given."""

    name = "channels_last"
    devices = frozenset({"cpu", "cuda"})
    stage = 20
    precision: Literal["same"] = "same"

    def applies(self, draft: Draft) -> bool:
        """Whether some convolution reads another layout."""
        assert draft.graph_module is not None
        return any(_is_other_layout(operands(node)[0]) for node in call_nodes(draft.graph_module.graph, *CONVOLUTIONS))

    def apply(self, draft: Draft) -> None:
        """Convert weights, and inputs where the layout does not come from a convolution before."""
        assert draft.graph_module is not None
        graph = draft.graph_module.graph
        for node in list(call_nodes(graph, *CONVOLUTIONS)):
            with graph.inserting_before(node):
                node.update_arg(1, _converted(graph, operands(node)[1], "clone.default", keep=True))
            propagate(graph)
            if _is_other_layout(operands(node)[0]):
                with graph.inserting_before(node):
                    node.update_arg(0, _converted(graph, operands(node)[0], "contiguous.default", keep=False))
        propagate(graph)


def _format(node: Any) -> torch.memory_format:
    import torch

    return torch.channels_last if len(shape(node)) == 4 else torch.channels_last_3d


def _is_other_layout(node: Any) -> bool:
    return len(shape(node)) in (4, 5) and not tensor(node).is_contiguous(memory_format=_format(node))


def _converted(graph: Graph, node: Any, name: str, keep: bool) -> Node:
    converted = emit(graph, name, node, memory_format=_format(node))
    if keep:
        mark([converted])
    return converted


TECHNIQUE = ChannelsLast()
