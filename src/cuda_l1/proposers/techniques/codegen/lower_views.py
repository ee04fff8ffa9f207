"""Rules for moves of data inside a region: reshapes, permutations, slices, concatenations, masks by position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.codegen.ir import Unsupported, Value, is_pointwise
from cuda_l1.proposers.techniques.codegen.lowering import Lowering, Result, dims_of, dtype_of, reversed_strides, rule
from cuda_l1.proposers.techniques.matching import argument, op_name, shape

if TYPE_CHECKING:
    from torch.fx import Node


@rule("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default", "aten.unsqueeze.default",
      "aten.squeeze.dim", "aten.squeeze.default", "aten.squeeze.dims", "aten.flatten.using_ints",
      "aten.unflatten.int", "aten.view_as.default", "aten.reshape_as.default")  # fmt: skip
def reshape(low: Lowering, node: Node) -> Value:
    return low.b.reshape(low.fresh(low.value(node.args[0])), shape(node))


@rule("aten.expand.default", "aten.expand_as.default", "aten.broadcast_to.default")
def expand(low: Lowering, node: Node) -> Value:
    return low.b.expand(low.fresh(low.value(node.args[0])), shape(node))


@rule("aten.permute.default", "aten.transpose.int", "aten.t.default", "aten.movedim.int", "aten.swapaxes.default",
      "aten.numpy_T.default", "aten.mT.default")  # fmt: skip
def permute(low: Lowering, node: Node) -> Value:
    value = low.value(node.args[0])
    order = _order(node, len(value.shape))
    if order == tuple(range(len(order))):
        return value
    return low.b.make("permute", (value,), tuple(value.shape[dim] for dim in order), value.dtype, order=order)


def _order(node: Node, rank: int) -> tuple[int, ...]:
    """Which input dimension each output dimension is."""
    name = op_name(node).split(".")[1]
    if name == "permute":
        return tuple(int(dim) % rank for dim in argument(node, "dims"))
    order = list(range(rank))
    if name == "movedim":
        source, target = (int(argument(node, key)) % rank for key in ("source", "destination"))
        order.insert(target, order.pop(source))
    elif name == "numpy_T":
        order.reverse()
    elif rank >= 2:
        ends = (-2, -1) if name in ("t", "mT") else _pair(node, name)
        first, second = (int(dim) % rank for dim in ends)
        order[first], order[second] = order[second], order[first]
    return tuple(order)


def _pair(node: Node, name: str) -> tuple[Any, Any]:
    keys = ("axis0", "axis1") if name == "swapaxes" else ("dim0", "dim1")
    return argument(node, keys[0]), argument(node, keys[1])


def _slice(low: Lowering, value: Value, dim: int, start: int, length: int) -> Value:
    if length == value.shape[dim]:
        return value
    sizes = tuple(length if index == dim else size for index, size in enumerate(value.shape))
    return low.b.make("slice", (value,), sizes, value.dtype, dim=dim, start=start)


@rule("aten.slice.Tensor")
def slice_(low: Lowering, node: Node) -> Value:
    value = low.value(node.args[0])
    dim = int(argument(node, "dim", 0)) % len(value.shape)
    if argument(node, "step", 1) != 1:
        raise Unsupported("a slice with a step")
    start = argument(node, "start") or 0
    start = max(start + value.shape[dim] if start < 0 else start, 0)
    return _slice(low, value, dim, min(start, value.shape[dim]), shape(node)[dim])


@rule("aten.select.int")
def select(low: Lowering, node: Node) -> Value:
    value = low.value(node.args[0])
    dim = int(argument(node, "dim")) % len(value.shape)
    index = int(argument(node, "index")) % value.shape[dim]
    return low.b.reshape(_slice(low, value, dim, index, 1), shape(node))


@rule("aten.chunk.default", "aten.split.Tensor", "aten.split_with_sizes.default", "aten.split.sizes",
      "aten.unbind.int")  # fmt: skip
def split(low: Lowering, node: Node) -> Result:
    value = low.value(node.args[0])
    dim = int(argument(node, "dim", 0)) % len(value.shape)
    parts: list[Value] = []
    start = 0
    for piece in node.meta["val"]:
        sizes = tuple(int(size) for size in piece.shape)
        length = sizes[dim] if len(sizes) == len(value.shape) else 1
        parts.append(low.b.reshape(_slice(low, value, dim, start, length), sizes))
        start += length
    return tuple(parts)


@rule("aten.glu.default")
def glu(low: Lowering, node: Node) -> Value:
    value = low.operand(node, 0)
    dim = int(argument(node, "dim")) % len(value.shape)
    half = value.shape[dim] // 2
    left, right = (_slice(low, value, dim, start, half) for start in (0, half))
    return low.b.point("mul", left, low.b.point("sigmoid", right))


@rule("aten.cat.default", "aten.stack.default", "aten.concat.default")
def cat(low: Lowering, node: Node) -> Value:
    tensors: Any = argument(node, "tensors")
    parts = [low.b.cast(low.value(part), dtype_of(node)) for part in tensors]
    dim = int(argument(node, "dim", 0)) % len(shape(node))
    if op_name(node) == "aten.stack.default":
        parts = [low.b.reshape(part, (*part.shape[:dim], 1, *part.shape[dim:])) for part in parts]
    return parts[0] if len(parts) == 1 else low.b.make("cat", parts, shape(node), parts[0].dtype, dim=dim)


@rule("aten.flip.default")
def flip(low: Lowering, node: Node) -> Value:
    value = low.value(node.args[0])
    return _flipped(low, value, dims_of(argument(node, "dims"), len(value.shape)))


def _flipped(low: Lowering, value: Value, dims: tuple[int, ...]) -> Value:
    """Memory is read backwards, element-wise operations work on what was reversed before."""
    dims = tuple(dim for dim in dims if value.shape[dim] > 1)
    if not dims:
        return value
    if is_pointwise(value):
        rank = len(value.shape)
        args = [
            _flipped(low, arg, tuple(dim - rank + len(arg.shape) for dim in dims if dim >= rank - len(arg.shape)))
            for arg in value.args
        ]
        return low.b.make(value.op, args, value.shape, value.dtype, **value.attrs)
    result = low.b.make("flip", (value,), value.shape, value.dtype, dims=dims)
    if value.op != "load":
        return result
    strides, offset = reversed_strides(result, value.attrs["strides"], value.attrs["offset"])
    return low.b.make("load", (), value.shape, value.dtype, **{**value.attrs, "strides": strides, "offset": offset})


@rule("aten.arange.default", "aten.arange.start", "aten.arange.start_step")
def arange(low: Lowering, node: Node) -> Value:
    start, step = argument(node, "start", 0), argument(node, "step", 1)
    if dtype_of(node) not in ("i64", "i32") or not isinstance(start, int) or not isinstance(step, int):
        raise Unsupported("arange of fractions")
    return _positions(low, shape(node)[0], start, step, dtype_of(node))


def _positions(low: Lowering, length: int, start: int = 0, step: int = 1, dtype: str = "i32") -> Value:
    if abs(start) + abs(step) * length >= 2**31:
        raise Unsupported("positions beyond 32 bits")
    index = low.fresh(low.b.make("iota", (), (length,), "i32"))
    if step != 1:
        index = low.b.point("mul", index, step)
    return low.b.cast(low.b.point("add", index, start) if start else index, dtype)


@rule("aten.tril.default", "aten.triu.default")
def triangle(low: Lowering, node: Node) -> Value:
    value, diagonal = low.value(node.args[0]), int(argument(node, "diagonal", 0))
    rows, columns = value.shape[-2:]
    row = low.b.reshape(_positions(low, rows), (rows, 1))
    column = _positions(low, columns)
    offset = low.b.point("sub", column, row)
    keep = low.b.point("le" if "tril" in op_name(node) else "ge", offset, diagonal)
    zero = low.b.const(0 if value.dtype != "b8" else False, value.dtype)
    return low.b.point("where", keep, value, zero, dtype=value.dtype)
