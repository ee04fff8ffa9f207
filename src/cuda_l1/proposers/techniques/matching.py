"""Reading and writing graphs: operation names, shapes, memory, and nodes that carry their own fake value.

Operations are compared by printed name (`aten.mul.Tensor`), so a technique needs no torch to describe a pattern.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    import torch
    from torch.fx import Graph, Node

MAY_RETURN_ARGUMENT = frozenset(
    f"aten.{name}.default"
    for name in ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout", "pad")
)
"""Operations that may return their first argument although their schema does not say so."""

CONVOLUTION = tuple(f"aten.conv{rank}d.default" for rank in (1, 2, 3))
PADDED_CONVOLUTION = tuple(f"aten.conv{rank}d.padding" for rank in (1, 2, 3))
"""With the padding named by a word (`same`, `valid`)."""
TRANSPOSED_CONVOLUTION = ("aten.conv_transpose1d.default", "aten.conv_transpose2d.input", "aten.conv_transpose3d.input")
TRANSPOSES = tuple(
    f"aten.{name}" for name in ("t.default", "mT.default", "numpy_T.default", "transpose.int", "permute.default")
)

_LITERAL = "lifted_tensor_"

GENERATED = "prelude."
"""Prefix of the `get_attr` nodes that stand for functions of the prelude rather than attributes of the module."""

FROZEN = "frozen"
"""Key in `node.meta` of calls whose place in the order of the program matters."""

UNSIZED = "unsized"
"""Key in `node.meta` of calls that read or give a tensor whose sizes depend on data."""

RANDOM = ("rand", "dropout", "bernoulli", "normal", "multinomial", "poisson", "exponential", "rrelu", "uniform")


def op_name(node: Any) -> str:
    """`aten.mul.Tensor` for an ATen call, the plain name for other calls, "" for anything else."""
    if getattr(node, "op", None) != "call_function":
        return ""
    target = node.target
    return str(target) if hasattr(target, "_schema") else getattr(target, "__name__", str(target))


def is_op(node: Any, *names: str) -> TypeGuard[Node]:
    """Whether `node` is a call of one of the named operations that patterns may match (see `freeze`)."""
    return op_name(node) in names and not (node.meta.get(FROZEN) or node.meta.get(UNSIZED))


def operands(node: Node) -> tuple[Any, ...]:
    """The positional arguments of a call."""
    return tuple(node.args)


def val(node: Any) -> torch.Tensor | None:
    """The fake tensor a node stands for; None for anything that is not one tensor of known sizes."""
    value = node.meta.get("val") if hasattr(node, "meta") else None
    if value is None or not hasattr(value, "untyped_storage") or value._has_symbolic_sizes_strides:
        return None
    return value  # type: ignore[no-any-return]


def tensor(node: Any) -> torch.Tensor:
    """The fake tensor of a node that is known to be a tensor; TypeError otherwise."""
    value = val(node)
    if value is None:
        raise TypeError(f"{node} is not one tensor")
    return value


def shape(node: Any) -> tuple[int, ...]:
    """The static shape of a tensor node."""
    return tuple(int(size) for size in tensor(node).shape)


def numel(node: Any) -> int:
    """Number of elements of a tensor node."""
    return math.prod(shape(node))


def has_unknown_size(node: Any) -> bool:
    """Whether the node is a tensor whose sizes depend on data, holds one, or is a number that does."""
    return _unknown_size(node.meta.get("val"))


def _unknown_size(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_unknown_size, value))
    if hasattr(value, "untyped_storage"):
        return bool(value._has_symbolic_sizes_strides)
    return hasattr(value, "node")  # a SymInt and its kin


def is_literal(target: Any) -> bool:
    """Whether a `get_attr` target stands for a constant made in forward; before its last dot stands the module that
    uses it."""
    return str(target).rpartition(".")[2].startswith(_LITERAL)


def argument(node: Node, name: str, default: Any = None) -> Any:
    """An argument of an ATen call by its schema name, however it was passed; the schema's default, else `default`."""
    for index, parameter in enumerate(node.target._schema.arguments):  # type: ignore[union-attr]
        if parameter.name == name:
            if name in node.kwargs:
                return node.kwargs[name]
            if index < len(node.args):
                return node.args[index]
            return parameter.default_value if parameter.has_default_value() else default
    return default


def is_float(node: Any) -> bool:
    """Whether the node is a real floating-point tensor."""
    value = val(node)
    return value is not None and value.dtype.is_floating_point


def is_view(node: Any) -> bool:
    """Whether the result may share memory with the first argument (or is part of a result that may)."""
    name = op_name(node)
    if name == "getitem" or name in MAY_RETURN_ARGUMENT:
        return True
    if name == "aten.contiguous.default":
        return val(node) is None or tensor(node).stride() == tensor(node.args[0]).stride()
    if name.startswith("aten.to.") or name == "aten.type_as.default":
        return val(node) is None or tensor(node).dtype == tensor(node.args[0]).dtype
    returns = node.target._schema.returns if name.startswith("aten.") else ()
    return any(value.alias_info is not None for value in returns)


def storage_root(node: Any) -> Any:
    """The node that owns the memory this one may look into."""
    while is_view(node):
        node = node.args[0]
    return node


def writes(node: Node) -> list[Any]:
    """The arguments that this node writes to."""
    schema = getattr(node.target, "_schema", None) if node.op == "call_function" else None
    if schema is None:
        return []
    written = [p.name for p in schema.arguments if p.alias_info is not None and p.alias_info.is_write]
    if op_name(node) in ("aten.batch_norm.default", "aten.instance_norm.default") and _updates_statistics(node):
        written += ["running_mean", "running_var"]
    return [target for name in written if (target := argument(node, name)) is not None]


def _updates_statistics(node: Node) -> bool:
    flag = "training" if op_name(node) == "aten.batch_norm.default" else "use_input_stats"
    return bool(argument(node, flag))


def freeze(graph: Graph) -> None:
    """Mark the calls that touch memory which another call writes to: no pattern matches them, nothing moves them.

    A call that alone touches what it writes (batch normalisation and its running statistics) is not marked. Calls
    on tensors whose sizes depend on data get a mark of their own: no pattern matches them either, for it would ask for
    the sizes.
    """
    for node in graph.nodes:
        if any(map(has_unknown_size, (node, *node.all_input_nodes))):
            node.meta[UNSIZED] = True
    writers: dict[Any, set[Node]] = {}
    touching: dict[Any, set[Node]] = {}
    for node in graph.nodes:
        for target in writes(node):
            writers.setdefault(storage_root(target), set()).add(node)
        for source in node.all_input_nodes:
            touching.setdefault(storage_root(source), set()).add(node)
    for root in writers:
        if len(touching[root]) > 1:
            for node in (root, *touching[root]):
                node.meta[FROZEN] = True


def is_pure(node: Node) -> bool:
    """Whether a call only computes: it writes nothing, draws nothing and changes no mode of the interpreter."""
    name = op_name(node)
    known = name.startswith("aten.") or name in ("getitem", "call")
    return known and not writes(node) and not is_random(node) and "assert" not in name


def is_random(node: Any) -> bool:
    """Whether the node draws from a random generator."""
    name = op_name(node)
    if not name.startswith("aten."):
        return False
    base = name.split(".")[1]
    if "dropout" in base:
        training = argument(node, "train", True) if "train" in _parameters(node) else argument(node, "training", True)
        return bool(training) and argument(node, "p", 0.5) != 0
    if base.startswith("scaled_dot_product"):
        return bool(argument(node, "dropout_p", 0.0))
    if base in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        return bool(argument(node, "train")) and argument(node, "dropout") != 0
    return any(word in base for word in RANDOM)


def _parameters(node: Node) -> list[str]:
    return [parameter.name for parameter in node.target._schema.arguments]  # type: ignore[union-attr]


def fake_call(graph: Graph, target: Any, args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> Any:
    """What `target` returns for the fake values of its argument nodes."""
    import torch
    from torch.fx.node import map_arg

    values = map_arg(tuple(args), lambda node: node.meta.get("val"))
    keywords = map_arg(dict(kwargs or {}), lambda node: node.meta.get("val"))
    with _fake_mode(graph), torch.no_grad():
        return target(*values, **keywords)


def _fake_mode(graph: Graph) -> Any:
    """The mode that the graph's fake values belong to; values of two modes cannot meet."""
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

    values = (node.meta.get("val") for node in graph.nodes)
    return next((value.fake_mode for value in values if isinstance(value, FakeTensor)), None) or FakeTensorMode()


def set_val(node: Node, value: Any) -> None:
    """Attach the fake value that a new node stands for."""
    node.meta["val"] = value


def emit(graph: Graph, name: str, *args: Any, **kwargs: Any) -> Node:
    """Insert the ATen call `name` (`mul.Tensor`) at the graph's insertion point, with its fake value."""
    import torch

    base, overload = name.split(".")
    target = getattr(getattr(torch.ops.aten, base), overload)
    node = graph.call_function(target, args, kwargs)
    set_val(node, fake_call(graph, target, args, kwargs))
    return node


def emit_item(graph: Graph, several: Node, index: int) -> Node:
    """Insert the `index`-th of the results of a call that returns several."""
    node = graph.call_function(operator.getitem, (several, index))
    set_val(node, several.meta["val"][index])
    return node


def generated(graph: Graph, function: str, *args: Any, value: Any) -> Node:
    """Insert a call of the prelude's function `function`; `value` is the fake tensor (or tuple) that it returns."""
    callee = graph.create_node("get_attr", GENERATED + function)
    node = graph.call_function(operator.call, (callee, *args))
    set_val(node, value)
    return node


def call_nodes(graph: Graph, *names: str) -> Iterator[Node]:
    """All calls of the named operations that patterns may match, in order."""
    return (node for node in list(graph.nodes) if is_op(node, *names))


def only_user(node: Node) -> Node | None:
    """The single user of a node, or None when it has none or several."""
    return next(iter(node.users)) if len(node.users) == 1 else None
