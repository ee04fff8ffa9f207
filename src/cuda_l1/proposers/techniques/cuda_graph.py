"""The whole forward, as the draft prints it, replayed as one CUDA graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cuda_l1.proposers.baselines.graph import CAPTURE
from cuda_l1.proposers.techniques.draft import Draft
from cuda_l1.proposers.techniques.matching import has_unknown_size, op_name

if TYPE_CHECKING:
    from torch.fx import Graph

# Outputs are copied out of the graph's memory, which the next replay overwrites: a caller may keep what it was given.
_WRAPPER = '''
DERIVED_FROM = {derived_from}


def replayed_as_cuda_graph(base):
    """The module class with its forward captured at the first call and replayed from then on."""

    class ModelNew(base):
        def forward(self, *args, **kwargs):
            if "captured_forward" not in vars(self):
                vars(self)["captured_forward"] = CapturedForward(self, super().forward, DERIVED_FROM)
            return self.captured_forward(*args, **kwargs)

        def __getstate__(self):
            return {{name: value for name, value in super().__getstate__().items() if name != "captured_forward"}}

    return ModelNew
'''

_WAITS_FOR_DEVICE = ("aten.item.default", "aten._local_scalar_dense.default", "aten.equal.default")


class CudaGraph:
    """One launch for the whole forward: inputs copied in, the CUDA graph replayed, outputs copied out."""

    name = "cuda_graph"
    devices = frozenset({"cuda"})
    stage = 50
    precision: Literal["same", "tf32", "relaxed"] = "same"

    def applies(self, draft: Draft) -> bool:
        """Whether the forward is one fixed sequence of launches: captured, and no shape or branch depends on data."""
        if draft.graph_module is None or {self.name, "compile"} & set(draft.techniques):
            return False
        return _launches(draft.graph_module.graph) and not _depends_on_data(draft.graph_module.graph)

    def apply(self, draft: Draft) -> None:
        """Wrap the finished class; values kept between calls make it capture anew when their weights change."""
        draft.use(CAPTURE)
        draft.use(_WRAPPER.format(derived_from=repr(draft.derived_from)))
        draft.wrap.append("replayed_as_cuda_graph")


def _launches(graph: Graph) -> bool:
    return any(node.op == "call_function" and op_name(node) != "getitem" for node in graph.nodes)


def _depends_on_data(graph: Graph) -> bool:
    """Whether the host reads a result: a scalar taken out of a tensor, or a size that only the device knows."""
    return any(op_name(node) in _WAITS_FOR_DEVICE or has_unknown_size(node) for node in graph.nodes)


TECHNIQUE = CudaGraph()
