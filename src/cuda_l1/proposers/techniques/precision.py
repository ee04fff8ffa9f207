"""Products of float32 tensors: what the techniques that lower precision look for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuda_l1.proposers.techniques.matching import (
    CONVOLUTION,
    PADDED_CONVOLUTION,
    TRANSPOSED_CONVOLUTION,
    call_nodes,
    val,
)

if TYPE_CHECKING:
    from torch.fx import Graph, Node

MATRIX_PRODUCTS = tuple(
    f"aten.{name}.default"
    for name in ("matmul", "mm", "bmm", "addmm", "baddbmm", "linear", "mv", "einsum", "scaled_dot_product_attention")
)
CONVOLUTIONS = (*CONVOLUTION, *PADDED_CONVOLUTION, *TRANSPOSED_CONVOLUTION, "aten.convolution.default")


def float32_products(graph: Graph, names: tuple[str, ...] = MATRIX_PRODUCTS + CONVOLUTIONS) -> Iterator[Node]:
    """Calls of the named products whose operands and result are float32 (masks of attention may be bool)."""
    import torch

    for node in call_nodes(graph, *names):
        values = [value for item in (node, *node.all_input_nodes) if (value := val(item)) is not None]
        if all(value.dtype == torch.float32 for value in values if value.dtype != torch.bool):
            yield node
