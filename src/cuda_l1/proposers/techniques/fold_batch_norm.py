"""Batch normalisation with frozen statistics is an affine map: fold it into the convolution or linear map before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuda_l1.proposers.techniques.derived import mark
from cuda_l1.proposers.techniques.matching import (
    CONVOLUTION,
    PADDED_CONVOLUTION,
    argument,
    call_nodes,
    emit,
    is_op,
    only_user,
    operands,
    shape,
)
from cuda_l1.proposers.techniques.rewrite import Rewrite

if TYPE_CHECKING:
    from torch.fx import Graph, Node

MAPS = ("aten.linear.default", *CONVOLUTION, *PADDED_CONVOLUTION)


class FoldBatchNorm(Rewrite):
    """`batch_norm(conv(x))` in eval mode -> `conv(x)` with scaled weights, kept under their version counters."""

    name = "fold_batch_norm"

    def sites(self, graph: Graph) -> Iterator[Node]:
        for node in call_nodes(graph, "aten.batch_norm.default"):
            source = operands(node)[0]
            frozen = not argument(node, "training") and argument(node, "running_mean") is not None
            if frozen and is_op(source, *MAPS) and only_user(source) is node and _features_are_channels(source):
                yield node

    def rewrite(self, graph: Graph, site: Node) -> Node:
        source = operands(site)[0]
        inputs, weight = operands(source)[:2]
        scale, shift = _affine(graph, site)
        filters = emit(graph, "reshape.default", scale, [-1] + [1] * (len(shape(weight)) - 1))
        new_weight = emit(graph, "mul.Tensor", weight, filters)
        bias = argument(source, "bias")
        if bias is not None:
            shift = emit(graph, "add.Tensor", emit(graph, "mul.Tensor", bias, scale), shift)
        mark([new_weight, shift])
        name = str(source.target).removeprefix("aten.")
        return emit(graph, name, inputs, new_weight, shift, *operands(source)[3:], **source.kwargs)


def _features_are_channels(source: Node) -> bool:
    """Whether what the map calls features is what batch normalisation calls channels: dimension 1."""
    return not is_op(source, "aten.linear.default") or len(shape(source)) == 2


def _affine(graph: Graph, norm: Node) -> tuple[Node, Node]:
    """(scale, shift) per channel of a batch normalisation with frozen statistics."""
    eps = argument(norm, "eps")
    weight, bias = argument(norm, "weight"), argument(norm, "bias")
    mean, variance = argument(norm, "running_mean"), argument(norm, "running_var")
    scale = emit(graph, "rsqrt.default", emit(graph, "add.Tensor", variance, eps))
    if weight is not None:
        scale = emit(graph, "mul.Tensor", weight, scale)
    shift = emit(graph, "neg.default", emit(graph, "mul.Tensor", mean, scale))
    if bias is not None:
        shift = emit(graph, "add.Tensor", shift, bias)
    return scale, shift


TECHNIQUE = FoldBatchNorm()
