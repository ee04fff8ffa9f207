"""The normal form that techniques work on: plain arguments and results, no in-place operations where avoidable.

Each step keeps what the graph computes: literal tensors lose the copy that export wraps them in, in-place operations
on fresh values become functional, unused calls go. Whatever still writes to memory is seen by `matching.writes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.literals import literal_value
from cuda_l1.proposers.techniques.matching import (
    fake_call,
    freeze,
    is_pure,
    is_view,
    op_name,
    storage_root,
    tensor,
    val,
    writes,
)

if TYPE_CHECKING:
    from torch.fx import Graph, GraphModule, Node

NUMBERED: dict[str, tuple[str, tuple[int, ...]]] = {
    "aten.add.Tensor": ("add.Tensor", (1, 0)),
    "aten.mul.Tensor": ("mul.Tensor", (1, 0)),
    "aten.sub.Tensor": ("sub.Tensor", (1,)),
    "aten.div.Tensor": ("div.Tensor", (1,)),
    "aten.pow.Tensor_Tensor": ("pow.Tensor_Scalar", (1,)),
    "aten.maximum.default": ("clamp_min.default", (1, 0)),
    "aten.minimum.default": ("clamp_max.default", (1, 0)),
    "aten.max.other": ("clamp_min.default", (1, 0)),
    "aten.min.other": ("clamp_max.default", (1, 0)),
    "aten.where.self": ("where.ScalarOther", (2,)),
}
"""Calls of which an operand may be a number: the overload that takes one, and the places where it may stand."""


def normalise(module: GraphModule) -> None:
    """Bring a captured graph into normal form, in place."""
    weights_first(module.graph)
    drop_literal_copies(module.graph)
    functionalise(module.graph)
    inline_scalars(module.graph)
    remove_unused(module.graph)
    freeze(module.graph)


def weights_first(graph: Graph) -> None:
    """Read every weight before anything is computed, each once, so that a rewrite may use it anywhere."""
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    anchor = placeholders[-1] if placeholders else None
    seen: dict[str, Node] = {}
    for node in [node for node in graph.nodes if node.op == "get_attr"]:
        known = seen.setdefault(str(node.target), node)
        if known is not node:
            node.replace_all_uses_with(known)
            graph.erase_node(node)
        elif anchor is not None:
            anchor.append(node)
            anchor = node


def propagate(graph: Graph) -> None:
    """Compute every fake value anew; a view that no longer fits its argument's strides becomes a reshape."""
    import torch

    for node in graph.nodes:
        if not op_name(node).startswith("aten."):
            continue
        try:
            value = fake_call(graph, node.target, node.args, node.kwargs)
        except (RuntimeError, ValueError):
            if op_name(node) != "aten.view.default":
                raise
            node.target = torch.ops.aten.reshape.default
            value = fake_call(graph, node.target, node.args, node.kwargs)
        node.meta["val"] = value


def remove_unused(graph: Graph) -> bool:
    """Erase calls whose results nobody reads and that write nothing and draw nothing; whether there were any."""
    unused = [node for node in reversed(graph.nodes) if not node.users and _is_removable(node)]
    for node in unused:
        graph.erase_node(node)
    return bool(unused) and (remove_unused(graph) or True)


def _is_removable(node: Node) -> bool:
    if node.op == "get_attr":
        return True
    return node.op == "call_function" and is_pure(node)


def _is_node(value: Any) -> bool:
    from torch.fx import Node

    return isinstance(value, Node)


def drop_literal_copies(graph: Graph) -> None:
    """`torch.tensor([...])` in a forward arrives as a copy of a lifted constant; keep it only where it is written."""
    for node in list(graph.nodes):
        if op_name(node) in ("aten.lift_fresh_copy.default", "aten.lift_fresh.default"):
            source = node.args[0]
            for user in list(node.users):
                if op_name(user) == "aten.detach_.default":
                    user.replace_all_uses_with(node)
                    graph.erase_node(user)
            if not _is_written(node) and not any(user.op == "output" for user in node.users):
                node.replace_all_uses_with(source)
                graph.erase_node(node)


def _is_written(node: Node) -> bool:
    return any(storage_root(target) is node for user in node.graph.nodes for target in writes(user))


def inline_scalars(graph: Graph) -> None:
    """`x * torch.tensor(2.0)` becomes `x * 2.0`: an operand that is one literal number is written as a number."""
    for node in graph.nodes:
        overload, places = NUMBERED.get(op_name(node), ("", ()))
        for place in places if not node.kwargs else ():
            number = _literal_number(node.args[place])
            if number is not None:
                others = [operand for index, operand in enumerate(node.args) if index != place]
                others.insert(places[0], number)
                _replace_call(node, overload, tuple(others))
                break


def _literal_number(value: Any) -> float | None:
    """The number that a floating tensor without dimensions has in every call, or None."""
    if not _is_node(value) or value.op not in ("get_attr", "call_function") or val(value) is None:
        return None
    if tensor(value).dim() != 0 or not tensor(value).dtype.is_floating_point:
        return None
    found = literal_value(value)
    return None if found is None else float(found)


def _replace_call(node: Node, name: str, arguments: tuple[Any, ...]) -> None:
    """Call another overload with other arguments if that leaves the form of the result as it is."""
    import torch

    base, overload = name.split(".")
    target = getattr(getattr(torch.ops.aten, base), overload)
    before, after = val(node), fake_call(node.graph, target, arguments, node.kwargs)
    if before is not None and (before.dtype, before.shape, before.stride()) == (
        after.dtype,
        after.shape,
        after.stride(),
    ):
        node.target, node.args = target, arguments


def functionalise(graph: Graph) -> None:
    """`y = op_(x)` becomes `y = op(x)`, later uses of x reading y, where x is a fresh value that nothing views."""
    order = {node: index for index, node in enumerate(graph.nodes)}
    for node in list(graph.nodes):
        functional = _functional_overload(node)
        target: Any = node.args[0] if node.args else None
        if functional is None or not _is_fresh(target, order, node):
            continue
        later = [user for user in target.users if order[user] > order[node]]
        for user in later:
            user.replace_input_with(target, node)
        node.target = functional


def _functional_overload(node: Node) -> Any:
    """The functional twin of an in-place ATen operation whose result keeps the dtype and shape of its target."""
    import torch

    name = op_name(node)
    if not name.startswith("aten."):
        return None
    base, overload = name.removeprefix("aten.").split(".")
    if not base.endswith("_") or base.endswith("__"):
        return None
    found = getattr(getattr(torch.ops.aten, base[:-1], None), overload, None)
    if found is None or not _same_result_type(node, found):
        return None
    return found


def _same_result_type(node: Node, functional: Any) -> bool:
    """In-place operations cast to the target's dtype; a functional twin that would promote is no twin."""
    result = fake_call(node.graph, functional, node.args, node.kwargs)
    target = val(node.args[0])
    return (
        result is not None
        and target is not None
        and result.dtype == target.dtype
        and result.shape == target.shape
        and result.stride() == target.stride()
    )


def _is_fresh(target: Any, order: dict[Node, int], writer: Node) -> bool:
    """Whether `target` owns its memory and nothing else looks into it: no view before or after the write."""
    if not _is_node(target) or target.op != "call_function" or is_view(target) or writes(target):
        return False
    return not any(is_view(user) and order.get(user, 0) < order[writer] for user in target.users)
