"""Element-wise calls write over an intermediate that nobody reads again: half the memory traffic, no allocation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from cuda_l1.proposers.techniques.lifetimes import Lifetimes
from cuda_l1.proposers.techniques.matching import argument, is_op, op_name, operands, tensor, val

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
        return next(_takers(draft.graph_module.graph), None) is not None

    def apply(self, draft: Draft) -> None:
        """Turn every such call into its in-place twin; memory passes from call to call."""
        assert draft.graph_module is not None
        for node, position in _takers(draft.graph_module.graph):
            if position == 1:
                node.args = (node.args[1], node.args[0], *node.args[2:])
            node.target = _twin(node)


def _takers(graph: Graph) -> Iterator[tuple[Node, int]]:
    """(call, position of the argument that it can write over); each is rewritten before the next is asked for. To write
    over memory makes its life longer, so no call before it can do so because of it: one pass finds all."""
    lifetimes = Lifetimes(graph)
    owners: dict[Node, Node] = {}
    for node in graph.nodes:
        if not is_op(node, *ELEMENTWISE) or _twin(node) is None:
            continue
        swappable = is_op(node, *COMMUTATIVE) and argument(node, "alpha", 1) == 1
        for position in (0, 1) if swappable else (0,):
            source = operands(node)[position]
            owner = owners.get(source, source)
            if _can_take(node, source, owner, lifetimes):
                yield node, position
                owners[node] = owner
                lifetimes.takes_over(node, owner)
                break


def _twin(node: Node) -> Any:
    """The in-place overload of an ATen call, or None."""
    import torch

    base, overload = op_name(node).removeprefix("aten.").split(".")
    return getattr(getattr(torch.ops.aten, base + "_", None), overload, None)


def _can_take(node: Node, source: Any, owner: Any, lifetimes: Lifetimes) -> bool:
    """Whether the result fits into the memory of `source`, all of what `owner` has, which dies here and which no other
    argument looks into."""
    if val(source) is None or owner is not lifetimes.root(source):
        return False
    if not lifetimes.owned(owner) or not lifetimes.dies_at(owner, node):
        return False
    if any(other is not source and lifetimes.root(other) is owner for other in node.all_input_nodes):
        return False
    one, two = tensor(node), tensor(source)
    return one.dtype == two.dtype and one.shape == two.shape and one.stride() == two.stride()


TECHNIQUE = InPlace()
