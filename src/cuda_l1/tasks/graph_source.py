"""Print a captured graph as readable Python.

    graph_module = capture(module, (x,))
    signature(graph_module)        # ["x"]
    print_forward(graph_module)    # ["linear = torch.ops.aten.linear.default(x, self.fc.weight, self.fc.bias)",
                                   #  "return linear"]

The lines need only `import torch` and, where a shape depends on data, `import operator` and `import math`; they run
wherever their tensors are.
"""

from __future__ import annotations

import inspect
import keyword
import math
import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cuda_l1.errors import TaskError
from cuda_l1.tasks.graph_capture import capture

if TYPE_CHECKING:
    import torch

__all__ = ["attribute", "capture", "literal", "print_forward", "signature"]

_RESERVED = frozenset({"self", "torch", "operator", "math", "nn", "F"})


def signature(graph: torch.fx.GraphModule | torch.fx.Graph) -> list[str]:
    """The names of the arguments of the printed `forward`, in order, without `self`."""
    names = _names(_graph_of(graph))
    return [names[node] for node in _graph_of(graph).nodes if node.op == "placeholder"]


def print_forward(graph: torch.fx.GraphModule | torch.fx.Graph, *, free: bool = False) -> list[str]:
    """The body of `forward`, one statement a line, unindented, the `return` last.

    A device of the capture (`device='cpu'` in `arange`) is printed as the device of the first tensor that the graph
    reads, so that the text works wherever its inputs are. `free` adds a `del` after the last use of each intermediate,
    so that memory peaks where it does for the module itself. Raises TaskError for operators outside torch.
    """
    body = _graph_of(graph)
    printer = _Printer(body)
    last_use = printer.last_uses() if free else {}
    lines: list[str] = []
    for node in body.nodes:
        line = printer.statement(node)
        if line is not None:
            lines.append(line)
        if dead := last_use.get(node):
            lines.append("del " + ", ".join(dead))
    return lines


def attribute(name: str, root: str = "self") -> str:
    """A dotted name as an expression: `self.fc.weight`, `getattr(self.layers, "0").weight`."""
    for part in name.split("."):
        plain = part.isidentifier() and not keyword.iskeyword(part)
        root = f"{root}.{part}" if plain else f'getattr({root}, "{part}")'
    return root


def literal(value: Any, device: str | None = None, names: Mapping[Any, str] | None = None) -> str:
    """`value` as Python text that evaluates to it, with only `torch` in scope.

    Numbers (inf and nan too), strings, None, Ellipsis, slices, containers, dtype, layout, memory format; a device is
    printed as the expression `device` where that is given; `names` maps graph nodes to variables. Raises TaskError.
    """
    import torch

    def inner(item: Any) -> str:
        return literal(item, device, names)

    if names is not None and isinstance(value, torch.fx.Node):
        return names[value]
    if value is None or value is Ellipsis or isinstance(value, (bool, int, str, bytes)):
        return "..." if value is Ellipsis else repr(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f'float("{value}")'
    if isinstance(value, complex):
        return f"complex({inner(value.real)}, {inner(value.imag)})"
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return str(value)
    if isinstance(value, torch.device):
        return device or f'torch.device("{value}")'
    if isinstance(value, slice):
        return f"slice({inner(value.start)}, {inner(value.stop)}, {inner(value.step)})"
    if isinstance(value, list):
        return "[" + ", ".join(map(inner, value)) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(inner, value)) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{inner(key)}: {inner(item)}" for key, item in value.items()) + "}"
    raise TaskError(f"cannot be printed: no literal for a {type(value).__name__}: {str(value)[:80]}")


def _graph_of(graph: torch.fx.GraphModule | torch.fx.Graph) -> torch.fx.Graph:
    import torch

    return graph.graph if isinstance(graph, torch.fx.GraphModule) else graph


def _names(graph: torch.fx.Graph) -> dict[torch.fx.Node, str]:
    """A variable for every node, or the attribute's expression; arguments keep the names that `forward` gave them."""
    names: dict[torch.fx.Node, str] = {}
    taken = set(_RESERVED)
    for node in sorted(graph.nodes, key=lambda node: node.op != "placeholder"):
        if node.op == "get_attr":
            names[node] = attribute(str(node.target))
            continue
        name = str(node.target) if node.op == "placeholder" else node.name
        while name in taken or keyword.iskeyword(name):
            name += "_"
        taken.add(name)
        names[node] = name
    return names


class _Printer:
    """The variables and the device expression of one graph."""

    def __init__(self, graph: torch.fx.Graph) -> None:
        self.graph = graph
        self.names = _names(graph)
        self.device, self.captured_on = self._device()

    def _device(self) -> tuple[str | None, torch.device | None]:
        """The expression for "where the data is": an input's device, else that of the first tensor of the module."""
        import torch

        readable = [node for node in self.graph.nodes if isinstance(node.meta.get("val"), torch.Tensor)]
        inputs = [node for node in readable if node.op == "placeholder" or self._is_leaf(node)]
        for node in [*inputs, *(node for node in readable if node.op == "get_attr")]:
            return f"{self._expression(node)}.device", node.meta["val"].device
        return None, None

    def _is_leaf(self, node: torch.fx.Node) -> bool:
        """Whether `node` is an element of an argument that is a container."""
        import torch

        while isinstance(node, torch.fx.Node) and node.target is operator.getitem:
            node = node.args[0]  # type: ignore[assignment]
        return isinstance(node, torch.fx.Node) and node.op == "placeholder"

    def _expression(self, node: torch.fx.Node) -> str:
        """A name that stays valid from the first line on, also where the node's own line comes later."""
        if node.op == "call_function":
            return f"{self._expression(node.args[0])}[{literal(node.args[1])}]"  # type: ignore[arg-type]
        return self.names[node]

    def last_uses(self) -> dict[torch.fx.Node, list[str]]:
        """node -> intermediates that nothing after it reads."""
        final: dict[torch.fx.Node, torch.fx.Node] = {}
        for node in self.graph.nodes:
            for used in node.all_input_nodes:
                if used.op == "call_function":
                    final[used] = node
        dead: dict[torch.fx.Node, list[str]] = {}
        for used, node in final.items():
            if node.op != "output":
                dead.setdefault(node, []).append(self.names[used])
        return dead

    def statement(self, node: torch.fx.Node) -> str | None:
        import torch

        if node.op in ("placeholder", "get_attr"):
            return None
        if node.op == "output":
            return f"return {self.value(node.args[0])}"
        if node.target is operator.getitem:
            return (
                f"{self.names[node]} = {self.value(node.args[0])}[{self.value(node.args[1])}]" if node.users else None
            )
        values = [self.value(arg) for arg in node.args]
        if node.target is torch.amp.autocast_mode._enter_autocast and self.device is not None:
            values[0] = f"{self.device}.type"
        values += [f"{key}={self.value(arg)}" for key, arg in node.kwargs.items() if not _is_default(key, arg)]
        call = f"{_function(node.target)}({', '.join(values)})"
        return f"{self.names[node]} = {call}" if node.users else call

    def value(self, value: Any) -> str:
        """A literal; the device of the capture becomes the device of the data, any other stays as written."""
        import torch

        if isinstance(value, torch.device) and value != self.captured_on:
            return literal(value)
        if isinstance(value, (list, tuple)) and any(isinstance(item, torch.fx.Node) for item in value):
            parts = ", ".join(map(self.value, value))
            return f"[{parts}]" if isinstance(value, list) else f"({parts},)" if len(value) == 1 else f"({parts})"
        return literal(value, self.device, self.names)


def _is_default(key: str, value: Any) -> bool:
    """Whether a keyword only repeats the operator's default, which would be noise for a reader."""
    return value is None or (key == "pin_memory" and value is False)


def _function(target: Any) -> str:
    """The expression that names an operator."""
    import torch

    if isinstance(target, torch._ops.OpOverload):
        if target.namespace not in ("aten", "prims"):
            raise TaskError(f"cannot be printed: it uses the custom operator `{target}`, which only this process knows")
        return f"torch.ops.{target.namespace}.{target._opname}.{target._overloadname}"
    name = getattr(target, "__name__", "")
    for prefix, home in (("operator", operator), ("math", math), ("torch", torch)):
        if name and getattr(home, name, None) is target:
            return f"{prefix}.{name}"
    if getattr(torch.amp.autocast_mode, name, None) is target and inspect.isfunction(target):
        return f"torch.amp.autocast_mode.{name}"
    raise TaskError(f"cannot be printed: it calls `{name or target}`")
