"""From graph nodes to expressions: one small rule per operation, looked up by printed name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.codegen.ir import INTEGERS, LEAVES, Builder, Unsupported, Value, topological
from cuda_l1.proposers.techniques.matching import argument, is_view, op_name, shape, storage_root, tensor, val

if TYPE_CHECKING:
    import torch
    from torch.fx import Node

DTYPES = {
    "torch.float32": "f32", "torch.float64": "f64", "torch.bfloat16": "bf16", "torch.float16": "f16",
    "torch.int64": "i64", "torch.int32": "i32", "torch.int16": "i16", "torch.int8": "i8", "torch.uint8": "u8",
    "torch.bool": "b8",
}  # fmt: skip
TORCH_NAMES = {short: long for long, short in DTYPES.items()}

Result = Value | tuple[Value | None, ...]
Rule = Callable[["Lowering", "Node"], Result]
RULES: dict[str, Rule] = {}
"""Operation name (`aten.add.Tensor`) to rule; filled by the `lower_*` modules."""

HEAVY: set[str] = set()
"""Operations that PyTorch itself runs as several passes or one expensive one: worth a kernel when alone."""


def rule(*names: str, heavy: bool = False) -> Callable[[Rule], Rule]:
    """Register a rule for the named operations."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        if heavy:
            HEAVY.update(names)
        return function

    return register


def dtype_of(node: Any) -> str:
    """The short dtype name of a tensor node; raises Unsupported for complex, quantised and 8-bit floating types."""
    name = str(tensor(node).dtype)
    if name not in DTYPES:
        raise Unsupported(f"dtype {name}")
    return DTYPES[name]


@dataclass(frozen=True)
class Piece:
    """A part of an output node: the value that fills it, and where in the node's memory its elements lie."""

    value: Value
    strides: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class Program:
    """What a region computes: the pieces of each output node."""

    outputs: dict[Node, list[Piece]]
    layouts: dict[Node, tuple[int, ...]]
    """Strides in elements that each output is written with: PyTorch's own."""

    @property
    def values(self) -> list[Value]:
        return [piece.value for pieces in self.outputs.values() for piece in pieces]


class Lowering:
    """The state of lowering one region: what its nodes stand for."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.b = Builder()
        self.members = set(nodes)
        self.env: dict[Any, Result] = {}
        self.positions = 0

    def run(self, nodes: Sequence[Node], outputs: Sequence[Node]) -> Program:
        """Lower `nodes`, in graph order. Raises Unsupported."""
        for node in nodes:
            if op_name(node) == "getitem":
                continue
            if is_alias(node) and not self._inside(node.args[0]):
                continue  # a view of something outside is read through its strides
            self.env[node] = RULES[op_name(node)](self, node)
        layouts = {node: layout(node) for node in outputs}
        taken: set[Value] = set()
        pieces = {node: list(self._pieces(self.stored(node), layouts[node], 0, taken)) for node in outputs}
        return Program(pieces, layouts)

    def _pieces(self, value: Value, strides: tuple[int, ...], offset: int, taken: set[Value]) -> Iterator[Piece]:
        """Concatenations are written part by part, reversals backwards; every piece is a value of its own."""
        if value.op == "cat":
            dim = value.attrs["dim"]
            for part in value.args:
                yield from self._pieces(part, strides, offset, taken)
                offset += part.shape[dim] * strides[dim]
        elif value.op == "flip":
            yield from self._pieces(value.args[0], *reversed_strides(value, strides, offset), taken)
        else:
            if value in taken or value.op in LEAVES:
                value = self.b.make("copy", (value,), value.shape, value.dtype, number=len(taken))
            taken.add(value)
            yield Piece(value, strides, offset)

    def fresh(self, value: Value) -> Value:
        """A copy of what is computed from positions alone, so that one `arange` may number rows and columns."""
        if value.op == "iota":
            self.positions += 1
            return self.b.make("iota", (), value.shape, value.dtype, number=self.positions)
        if not value.args or any(leaf.op == "load" for leaf in topological([value])):
            return value
        return self.b.make(value.op, [self.fresh(arg) for arg in value.args], value.shape, value.dtype, **value.attrs)

    def _inside(self, node: Any) -> bool:
        return node in self.env or (op_name(node) == "getitem" and self._inside(node.args[0]))

    def stored(self, node: Node) -> Value:
        """The value of an output node, in its dtype and shape."""
        value = self.b.cast(self.value(node), dtype_of(node))
        if value.shape != shape(node):
            raise Unsupported(f"{op_name(node)}: lowered to {value.shape}, not {shape(node)}")
        return value

    def value(self, arg: Any, like: str = "f32") -> Value:
        """The value of an argument: a member of the region, memory outside it, or a number of type `like`."""
        if isinstance(arg, (bool, int, float)):
            return self.b.const(arg, like)
        if op_name(arg) == "getitem" and self._inside(arg.args[0]):
            parts = self.env[arg.args[0]]
            part: Value | None = parts[arg.args[1]] if isinstance(parts, tuple) else None
            if part is None:
                raise Unsupported(f"result {arg.args[1]} of {op_name(arg.args[0])}")
            return part
        found = self.env.get(arg)
        if isinstance(found, Value):
            return found
        return self._load(arg)

    def _load(self, node: Any) -> Value:
        value = val(node)
        if value is None:
            raise Unsupported(f"{node} is not a tensor")
        source, offset = base_of(node)
        return self.b.make(
            "load", (), shape(node), dtype_of(node), source=source, strides=tuple(value.stride()), offset=offset
        )

    def operand(self, node: Node, index: int | str, dtype: str | None = None) -> Value:
        """An argument by position or schema name, cast to `dtype` (default: the node's own)."""
        arg = node.args[index] if isinstance(index, int) else argument(node, index)
        wanted = dtype or dtype_of(node)
        return self.b.cast(self.value(arg, wanted), wanted)


def is_alias(node: Any) -> bool:
    """Whether the node looks into its argument's memory, or is one of several such results."""
    if op_name(node) == "getitem":
        return is_alias(node.args[0])
    if not is_view(node):
        return False
    return val(node) is None or base_of(node)[0] is not node


def base_of(node: Any) -> tuple[Any, int]:
    """The node that owns a view's memory and the view's first element in it; the node itself where that is a copy."""
    root = storage_root(node)
    here, there = tensor(node), val(root)
    if root is node or there is None or here.dtype != there.dtype or not _same_storage(here, there):
        return node, 0
    return root, int(here.storage_offset()) - int(there.storage_offset())


def _same_storage(left: torch.Tensor, right: torch.Tensor) -> bool:
    return bool(left.untyped_storage()._cdata == right.untyped_storage()._cdata)


def layout(node: Any) -> tuple[int, ...]:
    """PyTorch's strides for a result, which views of it rely on. Raises Unsupported where it is not dense."""
    sizes = shape(node)
    strides = tuple(int(stride) for stride in tensor(node).stride())
    expected = 1
    for stride, size in sorted((s, n) for s, n in zip(strides, sizes, strict=True) if n != 1):
        if stride != expected:
            raise Unsupported("a result that is not dense")
        expected *= size
    return strides


def contiguous(sizes: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    strides = [1] * len(sizes)
    for dim in range(len(sizes) - 2, -1, -1):
        strides[dim] = strides[dim + 1] * max(sizes[dim + 1], 1)
    return tuple(strides)


def reversed_strides(value: Value, strides: tuple[int, ...], offset: int) -> tuple[tuple[int, ...], int]:
    """Strides and offset of memory that is walked backwards along the dimensions of a `flip`."""
    dims = value.attrs["dims"]
    offset += sum((value.shape[dim] - 1) * strides[dim] for dim in dims)
    return tuple(-stride if dim in dims else stride for dim, stride in enumerate(strides)), offset


def dims_of(dims: Any, rank: int) -> tuple[int, ...]:
    """Dimensions as sorted non-negative numbers; None and an empty list mean all of them."""
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return tuple(range(rank))
    listed = dims if isinstance(dims, (list, tuple)) else [dims]
    return tuple(sorted({int(dim) % rank for dim in listed})) if rank else ()


def supported(node: Node) -> bool:
    """Whether a rule exists and every tensor involved has a dtype that kernels handle."""
    if op_name(node) not in RULES:
        return False
    tensors = [value for other in [node, *node.all_input_nodes] if (value := val(other)) is not None]
    if any(str(value.dtype) not in DTYPES or value.layout != _strided() for value in tensors):
        return False
    result = val(node)
    return result is None or str(result.dtype).split(".")[1] not in ("int16", "int8", "uint8") or _only_casts(node)


def _strided() -> Any:
    import torch

    return torch.strided


def _only_casts(node: Node) -> bool:
    """Narrow integers wrap around in PyTorch; registers are wider, so only conversions and moves may make them."""
    return op_name(node).split(".")[1] in ("to", "_to_copy", "where", "type_as", "clone", "contiguous") or is_view(node)


def integer(value: Value) -> bool:
    """Whether the value holds integers."""
    return value.dtype in INTEGERS
