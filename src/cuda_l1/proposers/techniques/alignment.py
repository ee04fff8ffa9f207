"""Inputs that begin at any address, for kernels that load 16 bytes at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_l1.proposers.techniques.draft import Draft
from cuda_l1.proposers.techniques.matching import call_nodes, generated, storage_root

if TYPE_CHECKING:
    from torch.fx import Node

HELPER = '''
def aligned(tensor):
    """The tensor, or a copy of it where it does not begin at a multiple of 16 bytes."""
    if torch.compiler.is_compiling() or tensor.data_ptr() % 16 == 0:
        return tensor
    return tensor.clone(memory_format=torch.preserve_format)
'''


def align_inputs(draft: Draft, operations: tuple[str, ...]) -> None:
    """Have the named operations of a GPU draft read aligned copies of those inputs of `forward` that are not.

    PyTorch's fused attention ends a CUDA context, or answers wrongly in half precision, where query, key, value or
    bias begin elsewhere; operations that the reference writes out take any address. Results of other operations are
    allocated and so aligned.
    """
    if draft.graph_module is None or draft.device != "cuda":
        return
    graph = draft.graph_module.graph
    for node in call_nodes(graph, *operations):
        for argument in dict.fromkeys(node.all_input_nodes):
            if storage_root(argument).op == "placeholder":
                node.replace_input_with(argument, _aligned(draft, argument, node))


def _aligned(draft: Draft, argument: Node, before: Node) -> Node:
    assert draft.graph_module is not None
    draft.use(HELPER)
    with draft.graph_module.graph.inserting_before(before):
        return generated(draft.graph_module.graph, "aligned", argument, value=argument.meta["val"])
