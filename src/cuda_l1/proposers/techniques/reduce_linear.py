"""A sum or mean of a linear map's results is a smaller linear map: reduce the weights or the inputs first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.derived import mark
from cuda_l1.proposers.techniques.matching import (
    CONVOLUTION,
    TRANSPOSED_CONVOLUTION,
    argument,
    call_nodes,
    emit,
    is_float,
    is_op,
    numel,
    only_user,
    op_name,
    operands,
    shape,
    tensor,
    val,
)
from cuda_l1.proposers.techniques.pattern import is_number
from cuda_l1.proposers.techniques.rewrite import Rewrite

if TYPE_CHECKING:
    from torch.fx import Graph, Node

LINEAR = ("aten.linear.default",)
PRODUCT = ("aten.matmul.default", "aten.mm.default", "aten.bmm.default")
REDUCTIONS = ("aten.sum.dim_IntList", "aten.mean.dim", "aten.sum.default", "aten.mean.default")


@dataclass
class _Reduction:
    """`reduce(steps(source), dims)`, with `source` a linear map that nothing else reads."""

    kind: str
    """`sum` or `mean`."""
    dims: set[int]
    source: Node
    steps: list[tuple[Node, Any]]
    """(call, other operand) of scalings and additions between source and reduction, the last one first."""


class ReduceLinear(Rewrite):
    """`linear(x, W, b).sum(-1)` -> `linear(x, W.sum(0), b.sum())`; means, products and convolutions alike."""

    name = "reduce_linear"

    def sites(self, graph: Graph) -> Iterator[Node]:
        for node in call_nodes(graph, *REDUCTIONS):
            reduction = _reduction(node)
            if reduction is not None and _first_step(reduction):
                yield node

    def rewrite(self, graph: Graph, site: Node) -> Node:
        reduction = _reduction(site)
        assert reduction is not None
        step = _first_step(reduction)
        source = reduction.source
        if is_op(source, *CONVOLUTION, *TRANSPOSED_CONVOLUTION):
            result = _fewer_channels(graph, reduction)
        elif step == {len(shape(source)) - 1}:
            result = _fewer_features(graph, reduction)
        else:
            result = _fewer_rows(graph, reduction, step)
        result = _replay(graph, reduction, step, result)
        rest = sorted(reduction.dims - step)
        if rest:
            result = emit(graph, _overload(reduction.kind), result, rest, True)
        return result if _keeps_dims(site) else emit(graph, "squeeze.dims", result, sorted(reduction.dims))


def _overload(kind: str) -> str:
    return "sum.dim_IntList" if kind == "sum" else "mean.dim"


def _keeps_dims(node: Node) -> bool:
    return is_op(node, "aten.sum.dim_IntList", "aten.mean.dim") and bool(argument(node, "keepdim"))


def _reduction(node: Node) -> _Reduction | None:
    dtype = argument(node, "dtype")
    if not is_float(node) or (dtype is not None and dtype != tensor(operands(node)[0]).dtype):
        return None
    rank = len(shape(operands(node)[0]))
    dims = {int(dim) % rank for dim in argument(node, "dim") or range(rank)} if rank else set()
    source, steps = operands(node)[0], []
    while (step := _step(source)) is not None:
        steps.append((source, step[1]))
        source = step[0]
    if not is_op(source, *LINEAR, *PRODUCT, *CONVOLUTION, *TRANSPOSED_CONVOLUTION):
        return None
    if any(only_user(call) is None for call in (source, *(call for call, _ in steps))):
        return None
    kind = "sum" if op_name(node).startswith("aten.sum") else "mean"
    return _Reduction(kind, dims, source, steps)


def _step(node: Any) -> tuple[Any, Any] | None:
    """(value, other operand) of a scaling by a number, or an addition of something smaller."""
    if is_op(node, "aten.mul.Tensor", "aten.div.Tensor") and is_number(operands(node)[1]):
        return operands(node)[0], operands(node)[1]
    if not is_op(node, "aten.add.Tensor", "aten.sub.Tensor") or argument(node, "alpha") != 1:
        return None
    left, right = operands(node)[:2]
    if val(left) is not None and shape(left) == shape(node) and (is_number(right) or numel(right) < numel(node)):
        return left, right
    swapped = is_op(node, "aten.add.Tensor") and val(right) is not None and shape(right) == shape(node)
    return (right, left) if swapped and numel(left) < numel(node) else None


def _replay(graph: Graph, reduction: _Reduction, step: set[int], result: Node) -> Node:
    """The scalings and additions, on the reduced result: what was added is reduced in the same way."""
    for call, other in reversed(reduction.steps):
        name = op_name(call).removeprefix("aten.")
        if name in ("add.Tensor", "sub.Tensor") and reduction.kind == "sum":
            other = _summed(graph, other, step, reduction.source)
        elif name in ("add.Tensor", "sub.Tensor") and not is_number(other):
            other = _reduced(graph, "mean", other, [_aligned(other, step, reduction.source)])
        result = emit(graph, name, result, other)
    return result


def _summed(graph: Graph, other: Any, step: set[int], source: Node) -> Any:
    """The sum of an added number or vector over the one dimension of `step`."""
    if is_number(other):
        return other * shape(source)[next(iter(step))]
    return _reduced(graph, "sum", other, [_aligned(other, step, source)])


def _aligned(other: Any, step: set[int], source: Node) -> int:
    """The dimension of an added vector that meets the one dimension of `step`."""
    return next(iter(step)) - len(shape(source)) + len(shape(other))


def _first_step(reduction: _Reduction) -> set[int]:
    """The dimensions that one rewrite removes; empty when none of the reduced ones can be moved inside."""
    step = _movable(reduction)
    added = [other for call, other in reduction.steps if is_op(call, "aten.add.Tensor", "aten.sub.Tensor")]
    if added and len(step) != 1:
        return set()
    return step if all(is_number(other) or _is_vector(other, step, reduction.source) for other in added) else set()


def _is_vector(other: Any, step: set[int], source: Node) -> bool:
    """Whether an added tensor varies along the one dimension of `step` and along no other."""
    place, size = _aligned(other, step, source), shape(source)[next(iter(step))]
    return place >= 0 and shape(other)[place] == size == numel(other)


def _movable(reduction: _Reduction) -> set[int]:
    """The reduced dimensions that live in the weights, else those that live in the inputs."""
    source, dims = reduction.source, reduction.dims
    rank = len(shape(source))
    if is_op(source, *CONVOLUTION):
        return dims & {rank - len(shape(operands(source)[1])) + 1} if shape(source)[-rank + 1] > 1 else set()
    if is_op(source, *TRANSPOSED_CONVOLUTION):
        return dims & {rank - len(shape(operands(source)[1])) + 1} if argument(source, "groups") == 1 else set()
    left, right = operands(source)[:2]
    if is_op(source, *LINEAR):
        return _of_linear(dims, rank, shape(source))
    if min(len(shape(left)), len(shape(right))) < 2:
        return set()
    return _of_product(dims, rank, shape(left), shape(right))


def _of_linear(dims: set[int], rank: int, size: tuple[int, ...]) -> set[int]:
    if rank - 1 in dims and size[-1] > 1:
        return {rank - 1}
    return {dim for dim in dims - {rank - 1} if size[dim] > 1}


def _of_product(dims: set[int], rank: int, left: tuple[int, ...], right: tuple[int, ...]) -> set[int]:
    """Features live in the right operand, rows in the left one; batch dimensions only where the right has none."""
    if rank - 1 in dims and right[-1] > 1:
        return {rank - 1}
    if len(right) == 2:
        return {dim for dim in dims - {rank - 1} if left[dim] > 1}
    return {rank - 2} & dims if len(left) == rank and left[-2] > 1 else set()


def _reduced(graph: Graph, kind: str, weight: Any, dims: list[int]) -> Node:
    node = emit(graph, _overload(kind), weight, dims, True)
    mark([node])
    return node


def _fewer_features(graph: Graph, reduction: _Reduction) -> Node:
    """The features of the result are reduced: so are the rows of the weight."""
    source = reduction.source
    inputs, weight = operands(source)[:2]
    if not is_op(source, *LINEAR):
        return emit(graph, "matmul.default", inputs, _reduced(graph, reduction.kind, weight, [-1]))
    bias = argument(source, "bias")
    small_bias = None if bias is None else _reduced(graph, reduction.kind, bias, [0])
    return emit(graph, "linear.default", inputs, _reduced(graph, reduction.kind, weight, [0]), small_bias)


def _fewer_rows(graph: Graph, reduction: _Reduction, dims: set[int]) -> Node:
    """Rows of the result are reduced: so are those of the input; a bias is counted once per row."""
    source = reduction.source
    inputs, weight = operands(source)[:2]
    small = emit(graph, _overload(reduction.kind), inputs, sorted(dims), True)
    if not is_op(source, *LINEAR):
        return emit(graph, "matmul.default", small, weight)
    bias = argument(source, "bias")
    if bias is not None and reduction.kind == "sum":
        rows = 1
        for dim in dims:
            rows *= shape(source)[dim]
        bias = emit(graph, "mul.Tensor", bias, rows)
        mark([bias])
    return emit(graph, "linear.default", small, weight, bias)


def _fewer_channels(graph: Graph, reduction: _Reduction) -> Node:
    """Output channels are reduced: so are the weight's, group by group."""
    source = reduction.source
    weight, bias = operands(source)[1], argument(source, "bias")
    if is_op(source, *TRANSPOSED_CONVOLUTION):
        small = _reduced(graph, reduction.kind, weight, [1])
    else:
        small = _channel_sum(graph, reduction.kind, weight, argument(source, "groups"))
    small_bias = None if bias is None else _reduced(graph, reduction.kind, bias, [0])
    rest = list(operands(source)[3:])
    groups = [p.name for p in source.target._schema.arguments].index("groups")  # type: ignore[union-attr]
    if len(rest) > groups - 3:
        rest[groups - 3] = 1
    name = str(source.target).removeprefix("aten.")
    return emit(graph, name, operands(source)[0], small, small_bias, *rest)


def _channel_sum(graph: Graph, kind: str, weight: Any, groups: int) -> Node:
    """(out, in / groups, ...) -> (1, in, ...): each group's filters reduced, the groups side by side.

    A mean over all channels is the sum over groups of each group's mean, divided by the groups.
    """
    if groups == 1:
        return _reduced(graph, kind, weight, [0])
    out, per_group, *kernel = shape(weight)
    parts = emit(graph, "reshape.default", weight, [groups, out // groups, per_group, *kernel])
    small = emit(graph, _overload(kind), parts, [1])
    joined = emit(graph, "reshape.default", small, [1, groups * per_group, *kernel])
    if kind == "mean":
        joined = emit(graph, "div.Tensor", joined, groups)
    mark([joined])
    return joined


TECHNIQUE = ReduceLinear()
