"""Normalisations written out over the last dimension become `layer_norm` and `rms_norm`, their affine part included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.matching import (
    argument,
    call_nodes,
    emit,
    is_float,
    is_op,
    only_user,
    operands,
    shape,
    tensor,
    val,
)
from cuda_l1.proposers.techniques.pattern import Bind, Call, Found, call, either_order, matches, number, product
from cuda_l1.proposers.techniques.rewrite import Rewrite

if TYPE_CHECKING:
    from torch.fx import Graph, Node

X = Bind("x", is_float)
EPS = number("eps")
MEAN = call("mean.dim", X, bind="mean")
CENTRED = call("sub.Tensor", X, MEAN)
SQUARED = product(1, X, X)
VARIANCE = (
    call("var.correction var.dim", X, bind="variance"),
    call("mean.dim", product(1, CENTRED, CENTRED), bind="variance"),
)
MEAN_SQUARE = call("mean.dim", SQUARED, bind="mean")


def _over_root(numerator: Any, square: Any) -> tuple[Call, ...]:
    """`numerator / sqrt(square + eps)` and `numerator * rsqrt(square + eps)`."""
    shifted = either_order("add.Tensor", square, EPS)
    root = (call("sqrt.default", shifted), call("pow.Tensor_Scalar", shifted, 0.5))
    inverse = (
        call("rsqrt.default", shifted),
        call("pow.Tensor_Scalar", shifted, -0.5),
        call("reciprocal.default", root),
    )
    return call("div.Tensor", numerator, root), either_order("mul.Tensor", numerator, inverse)


LAYER = _over_root(CENTRED, VARIANCE)
RMS = _over_root(X, MEAN_SQUARE)
SCALED = either_order("mul.Tensor", call("layer_norm.default rms_norm.default", X, bind="norm"), Bind("weight"))
SHIFTED = either_order("add.Tensor", call("layer_norm.default", X, bind="norm"), Bind("bias"))


class FuseNorm(Rewrite):
    """`(x - mean) / sqrt(var + eps)` and `x * rsqrt(mean(x^2) + eps)` become one call, with weight and bias."""

    name = "fuse_norm"

    def sites(self, graph: Graph) -> Iterator[Node]:
        for node in call_nodes(graph, "aten.div.Tensor", "aten.mul.Tensor", "aten.add.Tensor"):
            if _core(node) is not None or _affine(node) is not None:
                yield node

    def rewrite(self, graph: Graph, site: Node) -> Node:
        core = _core(site)
        if core is not None:
            kind, found = core
            size = [shape(site)[-1]]
            if kind == "layer":
                return emit(graph, "layer_norm.default", found["x"], size, None, None, found["eps"])
            return emit(graph, "rms_norm.default", found["x"], size, None, found["eps"])
        affine = _affine(site)
        assert affine is not None
        norm = affine["norm"]
        weight = affine.get("weight", argument(norm, "weight"))
        if is_op(norm, "aten.rms_norm.default"):
            return emit(graph, "rms_norm.default", *operands(norm)[:2], weight, argument(norm, "eps"))
        return emit(graph, "layer_norm.default", *operands(norm)[:2], weight, affine.get("bias"), argument(norm, "eps"))


def _core(node: Node) -> tuple[str, Found] | None:
    """(`layer` | `rms`, x and eps) of a normalisation over the last dimension."""
    for kind, pattern in (("layer", LAYER), ("rms", RMS)):
        for found in matches(node, pattern):
            statistics = [found[name] for name in ("mean", "variance") if name in found]
            if all(_over_last(statistic) for statistic in statistics) and shape(found["x"]) == shape(node):
                return kind, found
    return None


def _over_last(statistic: Node) -> bool:
    """Whether a mean or a biased variance runs over the last dimension alone and keeps it."""
    dims, rank = argument(statistic, "dim"), len(shape(operands(statistic)[0]))
    if not dims or [dim % rank for dim in dims] != [rank - 1] or not argument(statistic, "keepdim"):
        return False
    if is_op(statistic, "aten.var.correction"):
        return bool(argument(statistic, "correction") == 0)
    if is_op(statistic, "aten.var.dim"):
        return not argument(statistic, "unbiased")
    return argument(statistic, "dtype") is None


def _affine(node: Node) -> Found | None:
    """A norm without the part that `node` applies to it and that the call can take."""
    for pattern, part in ((SCALED, "weight"), (SHIFTED, "bias")):
        for found in matches(node, pattern):
            norm, other = found["norm"], found[part]
            absent = argument(norm, part) is None and (part == "bias" or _no_bias(norm))
            if absent and only_user(norm) is node and _per_feature(other, norm) and _plain_sum(node):
                return found
    return None


def _no_bias(norm: Node) -> bool:
    return is_op(norm, "aten.rms_norm.default") or argument(norm, "bias") is None


def _per_feature(other: Any, norm: Node) -> bool:
    return (
        val(other) is not None
        and shape(other) == tuple(argument(norm, "normalized_shape"))
        and (tensor(other).dtype == tensor(norm).dtype)
    )


def _plain_sum(node: Node) -> bool:
    return not is_op(node, "aten.add.Tensor") or argument(node, "alpha") == 1


TECHNIQUE = FuseNorm()
