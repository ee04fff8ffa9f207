"""Products in bfloat16: operands rounded to 8 bits, sums in float32, weights rounded once per change of weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from cuda_l1.proposers.techniques.derived import mark
from cuda_l1.proposers.techniques.draft import Draft
from cuda_l1.proposers.techniques.matching import emit, is_float, is_op, op_name, tensor
from cuda_l1.proposers.techniques.precision import float32_products
from cuda_l1.proposers.techniques.rewrite import Rewrite

if TYPE_CHECKING:
    from torch.fx import Graph, Node

CAST = "to.dtype"


class Bf16(Rewrite):
    """Matrix products and convolutions on bfloat16 operands, everything between them in float32."""

    name = "bf16"
    stage = 20
    precision: Literal["same", "tf32", "relaxed"] = "relaxed"

    def applies(self, draft: Draft) -> bool:
        """Whether there is a product of float32, on a device that computes bfloat16 faster."""
        return _has_bf16_units(draft.device) and super().applies(draft)

    def sites(self, graph: Graph) -> Iterator[Node]:
        return float32_products(graph)

    def rewrite(self, graph: Graph, site: Node) -> Node:
        import torch
        from torch.fx.node import map_arg

        args = map_arg(site.args, lambda operand: _rounded(graph, operand))
        kwargs = map_arg(site.kwargs, lambda operand: _rounded(graph, operand))
        product = emit(graph, op_name(site).removeprefix("aten."), *args, **kwargs)
        return emit(graph, CAST, product, torch.float32)


def _rounded(graph: Graph, operand: Node) -> Node:
    """The operand in bfloat16: where it came from bfloat16 that value, else one cast for all who need it."""
    import torch

    if not is_float(operand):
        return operand
    if is_op(operand, f"aten.{CAST}") and tensor(operand.args[0]).dtype == torch.bfloat16:
        source: Node = operand.args[0]  # type: ignore[assignment]
        return source
    for user in operand.users:
        if is_op(user, f"aten.{CAST}") and user.args == (operand, torch.bfloat16) and not user.kwargs:
            return user
    cast = emit(graph, CAST, operand, torch.bfloat16)
    mark([cast])  # kept between calls where the operand is a weight
    return cast


def _has_bf16_units(device: str) -> bool:
    """Whether products in bfloat16 have hardware: AMX on a CPU; a GPU from compute capability 8.0 (assumed unseen)."""
    import torch

    if device == "cuda":
        return not torch.cuda.is_available() or torch.cuda.get_device_capability() >= (8, 0)
    probe = getattr(torch.cpu, "_is_amx_tile_supported", None)
    return bool(probe is not None and probe())


TECHNIQUE = Bf16()
