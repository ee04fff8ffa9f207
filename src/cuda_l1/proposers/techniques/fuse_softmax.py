"""Softmax, its logarithm and the log of a sum of exponentials, written out, become the single calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.matching import argument, call_nodes, emit, is_float, is_op, op_name, operands, shape
from cuda_l1.proposers.techniques.rewrite import Rewrite

if TYPE_CHECKING:
    from torch.fx import Graph, Node


class FuseSoftmax(Rewrite):
    """`exp(x - max) / sum(exp(x - max))` -> softmax; log-softmax and logsumexp alike, with or without the maximum."""

    name = "fuse_softmax"

    def sites(self, graph: Graph) -> Iterator[Node]:
        for node in call_nodes(graph, "aten.div.Tensor", "aten.log.default", "aten.sub.Tensor"):
            if _form(node) is not None:
                yield node

    def rewrite(self, graph: Graph, site: Node) -> Node:
        form = _form(site)
        assert form is not None
        name, x, *rest = form
        return emit(graph, name, x, *rest)


def _form(node: Node) -> tuple[Any, ...] | None:
    """The name and arguments of the call that `node` spells out."""
    if is_op(node, "aten.div.Tensor"):
        return _softmax(node)
    if is_op(node, "aten.log.default"):
        return _logsumexp(node)
    return _log_softmax(node) if is_op(node, "aten.sub.Tensor") and argument(node, "alpha") == 1 else None


def _softmax(node: Node) -> tuple[Any, ...] | None:
    exponential, total = operands(node)[:2]
    dim = _summed_dim(total)
    if dim is None or operands(total)[0] is not exponential or not is_op(exponential, "aten.exp.default"):
        return None
    return "softmax.int", _unshifted(operands(exponential)[0], dim), dim


def _logsumexp(node: Node) -> tuple[Any, ...] | None:
    total = operands(node)[0]
    if not is_op(total, "aten.sum.dim_IntList") or not is_op(operands(total)[0], "aten.exp.default"):
        return None
    x, dims = operands(operands(total)[0])[0], argument(total, "dim")
    if not is_float(x) or not dims or argument(total, "dtype") is not None:
        return None
    return "logsumexp.default", x, list(dims), bool(argument(total, "keepdim"))


def _log_softmax(node: Node) -> tuple[Any, ...] | None:
    """`x - logsumexp(x)`, the latter in one call or in three."""
    x, total = operands(node)[:2]
    if is_op(total, "aten.logsumexp.default"):
        dims = argument(total, "dim")
        if operands(total)[0] is x and len(dims) == 1 and argument(total, "keepdim"):
            return "log_softmax.int", _unshifted(x, dims[0]), dims[0]
        return None
    if not is_op(total, "aten.log.default"):
        return None
    dim = _summed_dim(operands(total)[0])
    if dim is None or not is_op(operands(operands(total)[0])[0], "aten.exp.default"):
        return None
    inner = operands(operands(operands(total)[0])[0])[0]
    return ("log_softmax.int", _unshifted(x, dim), dim) if inner is x and is_float(x) else None


def _summed_dim(total: Any) -> int | None:
    """The one dimension that a sum runs over and keeps."""
    if not is_op(total, "aten.sum.dim_IntList") or argument(total, "dtype") is not None or not is_float(total):
        return None
    dims = argument(total, "dim")
    return int(dims[0]) if dims and len(dims) == 1 and argument(total, "keepdim") else None


def _unshifted(x: Node, dim: int) -> Node:
    """`y` for `y - max(y)` over the same dimension: a softmax over it does not see the shift."""
    if not is_op(x, "aten.sub.Tensor") or argument(x, "alpha") != 1:
        return x
    source, shift = operands(x)[:2]
    if op_name(shift) == "getitem" and operands(shift)[1] == 0:
        shift = operands(shift)[0]
    if not is_op(shift, "aten.amax.default", "aten.max.dim") or operands(shift)[0] is not source:
        return x
    dims = argument(shift, "dim")
    dims = [dims] if isinstance(dims, int) else list(dims)
    same = [d % len(shape(x)) for d in dims] == [dim % len(shape(x))] and argument(shift, "keepdim")
    return source if same else x


TECHNIQUE = FuseSoftmax()
