"""Element-wise calls write over an intermediate that nobody reads again: half the memory traffic, no allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from cuda_l1.proposers.techniques.lifetimes import Lifetimes
from cuda_l1.proposers.techniques.matching import argument, is_op, op_name, operands, storage_root, tensor, val

if TYPE_CHECKING:
    from torch.fx import Graph, Node

    from cuda_l1.proposers.techniques.draft import Draft

UNARY = (
    "relu", "gelu", "silu", "sigmoid", "tanh", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "square", "abs",
    "neg", "reciprocal", "sin", "cos", "erf", "clamp", "clamp_min", "clamp_max", "hardtanh", "hardswish",
    "hardsigmoid", "leaky_relu", "elu", "mish", "relu6", "floor", "ceil", "round",
)  # fmt: skip
BINARY = ("add", "mul", "sub", "div", "masked_fill", "pow", "clamp_min", "clamp_max")
COMMUTATIVE = ("aten.add.Tensor", "aten.mul.Tensor")
BINARY_KINDS = ("Tensor", "Scalar", "Tensor_Scalar")
ELEMENTWISE = frozenset(f"aten.{name}.default" for name in UNARY)
ELEMENTWISE |= {f"aten.{name}.{kind}" for name in BINARY for kind in BINARY_KINDS}


class InPlace:
    """Element-wise operations reuse the memory of an intermediate that they are the last to read."""

    name = "in_place"
    devices = frozenset({"cpu", "cuda"})
    stage = 40
    precision: Literal["same"] = "same"

    def applies(self, draft: Draft) -> bool:
        """Whether any call can write over its argument."""
        assert draft.graph_module is not None
        return _next(draft.graph_module.graph) is not None

    def apply(self, draft: Draft) -> None:
        """Turn every such call into its in-place twin; memory passes from call to call."""
        assert draft.graph_module is not None
        graph = draft.graph_module.graph
        while (found := _next(graph)) is not None:
            node, position = found
            if position == 1:
                node.args = (node.args[1], node.args[0], *node.args[2:])
            node.target = _twin(node)


def _next(graph: Graph) -> tuple[Node, int] | None:
    """(call, position of the argument that it can write over)."""
    lifetimes = Lifetimes(graph)
    for node in graph.nodes:
        if is_op(node, *ELEMENTWISE) and _twin(node) is not None:
            swappable = is_op(node, *COMMUTATIVE) and argument(node, "alpha", 1) == 1
            for position in (0, 1) if swappable else (0,):
                if _can_take(node, operands(node)[position], lifetimes):
                    return node, position
    return None


def _twin(node: Node) -> Any:
    """The in-place overload of an ATen call, or None."""
    import torch

    base, overload = op_name(node).removeprefix("aten.").split(".")
    return getattr(getattr(torch.ops.aten, base + "_", None), overload, None)


def _can_take(node: Node, source: Any, lifetimes: Lifetimes) -> bool:
    """Whether the result fits into the memory of `source`, which dies here and which no other argument looks into."""
    if val(source) is None:
        return False
    owner = source
    while _is_in_place(owner):
        owner = operands(owner)[0]
    if owner is not storage_root(source) or not lifetimes.owned(owner) or not lifetimes.dies_at(owner, node):
        return False
    if any(other is not source and storage_root(other) is owner for other in node.all_input_nodes):
        return False
    one, two = tensor(node), tensor(source)
    return one.dtype == two.dtype and one.shape == two.shape and one.stride() == two.stride()


def _is_in_place(node: Any) -> bool:
    name = op_name(node)
    return name.startswith("aten.") and name.split(".")[1].endswith("_")


TECHNIQUE = InPlace()
