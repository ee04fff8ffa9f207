"""The mean of a convolution over all positions needs no convolution: each tap contributes the sum of what it reads."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.derived import mark
from cuda_l1.proposers.techniques.matching import (
    CONVOLUTION,
    TRANSPOSED_CONVOLUTION,
    argument,
    call_nodes,
    emit,
    is_op,
    only_user,
    op_name,
    operands,
    shape,
)
from cuda_l1.proposers.techniques.pattern import is_number
from cuda_l1.proposers.techniques.rewrite import Rewrite

if TYPE_CHECKING:
    from torch.fx import Graph, Node

POOLS = {f"aten.adaptive_avg_pool{rank}d.default": rank for rank in (1, 2, 3)}
REDUCTIONS = ("aten.mean.dim", "aten.sum.dim_IntList")


class PooledConvolution(Rewrite):
    """`conv(x).mean((2, 3))` -> a linear map of the sums over x that each tap of the kernel reads; sums alike."""

    name = "pooled_convolution"

    def sites(self, graph: Graph) -> Iterator[Node]:
        for node in call_nodes(graph, *REDUCTIONS, *POOLS):
            source, scalings = _behind_scalings(operands(node)[0])
            read_once = all(only_user(call) is not None for call in (source, *scalings) if hasattr(call, "users"))
            is_map = is_op(source, *CONVOLUTION, *TRANSPOSED_CONVOLUTION) and _is_plain(source)
            if is_map and read_once and _over_positions(node):
                yield node

    def rewrite(self, graph: Graph, site: Node) -> Node:
        source, scalings = _behind_scalings(operands(site)[0])
        batch, channels, *positions = shape(source)
        taps = _sums_per_tap(graph, source)
        count = math.prod(positions)
        bias = argument(source, "bias")
        if is_op(site, "aten.sum.dim_IntList"):
            bias = _marked(emit(graph, "mul.Tensor", bias, count)) if bias is not None else None
        else:
            taps = emit(graph, "div.Tensor", taps, count)
        result = emit(graph, "linear.default", taps, _weight(graph, source), bias)
        for call in reversed(scalings):
            result = emit(graph, op_name(call).removeprefix("aten."), result, operands(call)[1])
        keeps = is_op(site, *POOLS) or argument(site, "keepdim")
        return emit(graph, "reshape.default", result, [batch, channels, *[1] * len(positions)]) if keeps else result


def _behind_scalings(node: Any) -> tuple[Any, list[Node]]:
    """What lies behind products and quotients with numbers, and these, the last one first."""
    scalings = []
    while is_op(node, "aten.mul.Tensor", "aten.div.Tensor") and is_number(operands(node)[1]):
        scalings.append(node)
        node = operands(node)[0]
    return node, scalings


def _over_positions(node: Node) -> bool:
    """Whether a reduction runs over all positions and nothing else."""
    rank = len(shape(operands(node)[0]))
    if is_op(node, *POOLS):
        return rank == POOLS[op_name(node)] + 2 and all(size == 1 for size in shape(node)[2:])
    dims = argument(node, "dim")
    plain = argument(node, "dtype") is None
    return plain and bool(dims) and sorted(dim % rank for dim in dims) == list(range(2, rank))


def _is_plain(source: Node) -> bool:
    """A batched convolution in one group."""
    return argument(source, "groups") == 1 and len(shape(source)) == len(shape(operands(source)[1]))


def _marked(node: Node) -> Node:
    mark([node])
    return node


def _weight(graph: Graph, source: Node) -> Node:
    """(out, in x taps)."""
    weight: Node = operands(source)[1]
    if is_op(source, *TRANSPOSED_CONVOLUTION):
        weight = emit(graph, "transpose.int", weight, 0, 1)
    flat = emit(graph, "reshape.default", weight, [shape(weight)[0], -1])
    return _marked(emit(graph, "clone.default", flat)) if is_op(source, *TRANSPOSED_CONVOLUTION) else flat


def _sums_per_tap(graph: Graph, source: Node) -> Node:
    """(batch, in x taps): for each input channel and tap, the sum over the inputs that the tap reads.

    What a tap reads is a box with a step in each dimension, so the sums are taken one dimension after the other, the
    last first: every tap of a dimension reads the inputs once, later dimensions read what is left of them.
    """
    current: Node = operands(source)[0]
    rank = len(shape(source)) - 2
    for dim in reversed(range(rank)):
        parts = []
        for start, stop, step in _reads(source, dim):
            box = emit(graph, "slice.Tensor", current, dim + 2, start, stop, step)
            parts.append(emit(graph, "sum.dim_IntList", box, [dim + 2]))
        current = emit(graph, "stack.default", parts, -1)
    order = [0, 1, *reversed(range(2, rank + 2))]
    return emit(graph, "reshape.default", emit(graph, "permute.default", current, order), [shape(current)[0], -1])


def _reads(source: Node, dim: int) -> list[tuple[int, int, int]]:
    """For each tap of a dimension the inputs that it reads, as (start, stop, step)."""
    size, results = shape(operands(source)[0])[dim + 2], shape(source)[dim + 2]
    taps = shape(operands(source)[1])[dim + 2]
    stride, padding, dilation = (_per_dim(argument(source, name), dim) for name in ("stride", "padding", "dilation"))
    boxes = []
    for tap in range(taps):
        offset = tap * dilation - padding
        if is_op(source, *TRANSPOSED_CONVOLUTION):  # input i reaches result i * stride + offset
            read = [i for i in range(size) if 0 <= i * stride + offset < results]
            boxes.append((read[0], read[-1] + 1, 1) if read else (0, 0, 1))
        else:  # result i reads input i * stride + offset
            read = [i * stride + offset for i in range(results) if 0 <= i * stride + offset < size]
            boxes.append((read[0], read[-1] + 1, stride) if read else (0, 0, 1))
    return boxes


def _per_dim(value: Any, dim: int) -> int:
    """An entry of a per-dimension argument, which may be one number for all and is empty for the default stride."""
    if isinstance(value, int):
        return value
    if not value:
        return 1
    return int(value[dim] if len(value) > 1 else value[0])


TECHNIQUE = PooledConvolution()
