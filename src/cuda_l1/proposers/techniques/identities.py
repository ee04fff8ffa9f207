"""Calls that return what they were given: one times x, a cast to the same type, a double transpose, idle dropout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.matching import (
    TRANSPOSES,
    argument,
    call_nodes,
    emit,
    is_float,
    is_op,
    operands,
    shape,
    storage_root,
    tensor,
    val,
)
from cuda_l1.proposers.techniques.pattern import is_number
from cuda_l1.proposers.techniques.rewrite import Rewrite

if TYPE_CHECKING:
    from torch.fx import Graph, Node

NEUTRAL = {"aten.mul.Tensor": 1, "aten.div.Tensor": 1, "aten.add.Tensor": 0, "aten.sub.Tensor": 0}
NEUTRAL["aten.pow.Tensor_Scalar"] = 1
RESHAPES = frozenset(
    "aten." + name
    for name in (
        "view.default", "reshape.default", "flatten.using_ints", "expand.default", "expand_as.default",
        "squeeze.default", "squeeze.dim", "squeeze.dims", "view_as.default", "slice.Tensor", "unflatten.int",
        "to.dtype", "to.dtype_layout", "type_as.default", "alias.default", "detach.default", "tile.default",
        "repeat.default", "clone.default", "contiguous.default", "positive.default",
    )
)  # fmt: skip
"""With shape, dtype and strides unchanged these return their argument's values."""

DROPOUTS = frozenset(f"aten.{name}.default" for name in ("dropout", "feature_dropout", "alpha_dropout"))
SINGLE = frozenset(
    f"aten.{name}" for name in ("sum.dim_IntList", "mean.dim", "amax.default", "amin.default", "logsumexp.default")
)
"""Reductions that return the one element that they reduce."""

KNOWN = (*NEUTRAL, *RESHAPES, *TRANSPOSES, *DROPOUTS, *SINGLE, "aten.neg.default", "aten.pad.default")


class Identities(Rewrite):
    """Operations that change nothing go: neutral numbers, casts, views and copies to the same form, unit reductions.

    A copy that forward returns stays, since without it the result would share memory with an argument.
    """

    name = "identities"
    stage = 8

    def sites(self, graph: Graph) -> Iterator[Node]:
        returned = _returned_memory(graph)
        for node in call_nodes(graph, *KNOWN):
            same = unchanged(node)
            if same is not None and _may_share(node, same, returned):
                yield node

    def rewrite(self, graph: Graph, site: Node) -> Node:
        same: Node = unchanged(site)
        if shape(same) == shape(site):
            return same
        return emit(graph, "reshape.default", same, list(shape(site)))


def _returned_memory(graph: Graph) -> set[Any]:
    output = next(node for node in graph.nodes if node.op == "output")
    return {storage_root(node) for node in output.all_input_nodes}


def _may_share(node: Node, same: Node, returned: set[Any]) -> bool:
    """Whether dropping `node` leaves every returned tensor with memory of its own."""
    if storage_root(node) not in returned or storage_root(node) is storage_root(same):
        return True
    return storage_root(same).op == "call_function" and storage_root(same) not in returned


def unchanged(node: Node) -> Any:
    """The earlier node with the values of `node` (up to a reshape where the shapes differ), or None."""
    if not is_op(node, *KNOWN):
        return None
    source = operands(node)[0]
    if val(source) is None or val(node) is None or val(source).dtype != val(node).dtype:  # type: ignore[union-attr]
        return None
    if is_op(node, *SINGLE):
        return source if _reduces_one(node) else None
    if is_op(node, *TRANSPOSES):
        return _untransposed(node)
    if is_op(node, "aten.neg.default"):
        return operands(source)[0] if is_op(source, "aten.neg.default") else None
    if shape(source) != shape(node):
        return None
    if is_op(node, *NEUTRAL):
        return source if is_number(operands(node)[1]) and operands(node)[1] == NEUTRAL[str(node.target)] else None
    if is_op(node, "aten.pad.default") and any(argument(node, "pad")):
        return None  # (-1, 1) moves the elements and leaves the shape as it is
    if is_op(node, *DROPOUTS):
        return source if not argument(node, "train") or argument(node, "p") == 0 else None
    return source if _same_form(node, source) else None


def _same_form(node: Node, source: Node) -> bool:
    """Shape and dtype are known to be equal; device and strides must be, too, where they matter."""
    one, two = tensor(node), tensor(source)
    strides = zip(one.shape, one.stride(), two.stride(), strict=True)
    return one.device == two.device and all(size == 1 or left == right for size, left, right in strides)


def _reduces_one(node: Node) -> bool:
    source = operands(node)[0]
    dims = argument(node, "dim")
    if not is_float(source) or not dims:
        return False
    dims = [dims] if isinstance(dims, int) else dims
    return all(shape(source)[dim] == 1 for dim in dims)


def _permutation(node: Node) -> list[int]:
    """The order in which a transposing call takes the dimensions of its argument."""
    rank = len(shape(node))
    order = list(range(rank))
    if is_op(node, "aten.permute.default"):
        return [dim % rank for dim in argument(node, "dims")]
    if is_op(node, "aten.numpy_T.default"):
        return order[::-1]
    if rank < 2:
        return order
    one, two = (argument(node, "dim0"), argument(node, "dim1")) if is_op(node, "aten.transpose.int") else (-2, -1)
    order[one], order[two] = order[two], order[one]
    return order


def _untransposed(node: Node) -> Any:
    """What a transpose, or two of them in a row, give back unchanged."""
    source = operands(node)[0]
    order = _permutation(node)
    if order == sorted(order):
        return source
    if is_op(source, *TRANSPOSES):
        inner = _permutation(source)
        if [inner[dim] for dim in order] == sorted(order):
            return operands(source)[0]
    return None


TECHNIQUE = Identities()
