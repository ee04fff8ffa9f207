"""Capture a live module as a flat graph of ATen calls, with the module's own names for its tensors.

The level is that of `torch.export` before any decomposition: `aten.linear`, `aten.softmax.int`, `aten.layer_norm`,
`aten.conv2d`, `aten.batch_norm`, `aten.scaled_dot_product_attention`, in-place operations as they were written.
"""

from __future__ import annotations

import contextlib
import inspect
import keyword
import logging
import operator
import re
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from cuda_l1.errors import TaskError

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram

# They only repeat what the trace saw (dtype, device, layout) and would pin the module to the device of the capture.
_ASSERTIONS = frozenset(
    {"aten::_assert_tensor_metadata", "aten::_assert_scalar", "aten::sym_constrain_range_for_size"}
    | {"aten::sym_constrain_range"}
)

_ONE_AT_A_TIME = threading.Lock()
"""torch's tracing, Python's warnings and what is redirected are the process's, not a thread's."""


class OtherReturn(TaskError):
    """`forward` returns an object of a class that no graph can hold."""

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"its forward returns a {kind}; wrap the module so that it returns a tensor, tuple, list or dict"
        )


def capture(
    module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None
) -> torch.fx.GraphModule:
    """Trace `module(*args, **kwargs)` under no_grad, in the module's current train/eval mode and with static shapes.

    Returns a GraphModule whose graph has
    - one `placeholder` per argument of the call, under the argument's name in `forward`; the leaves of an argument
      that is a tuple, list or dict are `operator.getitem` calls on it;
    - `get_attr` nodes with the module's own dotted names for parameters, buffers, plain tensor attributes, and
      `lifted_tensor_N` for constants made in `forward`; the GraphModule shares the module's tensors, it copies none;
    - `call_function` nodes on `torch.ops.aten.*`, on `operator.getitem` (several results) and, where a shape depends
      on data, on `operator.*` and `torch.sym_*`; an autocast region is an enter and an exit call;
    - one `output` node in the structure that `forward` returned: a tensor, tuple, list or dict.
    `node.meta["val"]` is the fake tensor (or number) of each node.

    Mutations of arguments and buffers stay the in-place operations they were. Raises TaskError, one line, where the
    module cannot be traced: data-dependent control flow, attributes assigned in `forward`, other return types.
    """
    import torch

    try:
        with torch.no_grad(), _ONE_AT_A_TIME, _quiet(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            exported = torch.export.export(module, tuple(args), dict(kwargs or {}), strict=False)
    except Exception as error:  # the module's own forward runs in here and may raise anything
        if found := re.match(r"Found <class '(?:.*\.)?(\w+)'> in output", str(error).lstrip()):
            raise OtherReturn(found[1]) from error
        raise TaskError(_why_not(module, error)) from error
    _refuse_assignments(module, [str(warning.message) for warning in caught])
    return _Flattener(exported).build(_names_of(module, args))


class _ForOthers:
    """A stream that takes nothing from the thread that made it; what other threads say goes where it went before."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._silent = stream, threading.get_ident()

    def write(self, text: str) -> int:
        return len(text) if threading.get_ident() == self._silent else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep torch's pages about a failed trace off the terminal: the error's first line says it."""
    out, err = _ForOthers(sys.stdout), _ForOthers(sys.stderr)
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(out):
        logging.disable(logging.ERROR)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)


def _refuse_assignments(module: torch.nn.Module, warned: Sequence[str]) -> None:
    """A tensor attribute assigned in `forward` is state that no graph holds: the trace would freeze its first value."""
    for text in warned:
        if "assigned during export" not in text:
            continue
        names = [name for name in re.findall(r"self\.[\w.\[\]]+", text) if "_flat_weights" not in name]
        if names:
            raise TaskError(
                f"{type(module).__name__}: forward assigns the tensor {names[0]}, which a trace cannot hold; "
                "register it as a buffer and change it in place (`copy_`)"
            )


def _why_not(module: torch.nn.Module, error: Exception) -> str:
    """One line from the many that an export failure prints."""
    name = type(module).__name__
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    if "data-dependent" in str(error) or "DataDependent" in type(error).__name__:
        return (
            f"{name}: cannot be traced: its control flow depends on data; give `optimize` the part without the branch"
        )
    return f"{name}: cannot be traced: {type(error).__name__}: {text[:300]}"


def _names_of(module: torch.nn.Module, args: Sequence[Any]) -> list[str]:
    """The names under which `forward` receives its positional arguments; `*args` become `args_0`, `args_1`, ..."""
    names: list[str] = []
    for parameter in inspect.signature(module.forward).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}_{i}" for i in range(len(args) - len(names))]
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    return names[: len(args)]


class _Flattener:
    """Rewrites an exported program into one graph without lifted inputs and without nested regions."""

    def __init__(self, exported: ExportedProgram) -> None:
        import torch

        self.exported = exported
        self.graph = torch.fx.Graph()
        self.tensors: dict[str, Any] = {}

    def build(self, names: Sequence[str]) -> torch.fx.GraphModule:
        import torch

        values = self._inputs(names)
        results = self._inline(self.exported.graph_module, values)
        spec = self.exported.call_spec.out_spec
        self.graph.output(_structure(spec, iter(results)))
        _erase_unused_numbers(self.graph)
        self.graph.lint()
        odd = next((name for name in self.tensors if set(name.split(".")) & set(keyword.kwlist)), None)
        if odd is not None:
            raise TaskError(f"cannot be printed: the name `{odd}` holds a word that Python keeps for itself; rename it")
        return torch.fx.GraphModule(self.tensors, self.graph, class_name="Captured")

    def _inputs(self, names: Sequence[str]) -> list[Any]:
        """One value per placeholder of the exported graph, in its order."""
        from torch.export.graph_signature import InputKind

        specs = self.exported.graph_signature.input_specs
        nodes = list(self.exported.graph.find_nodes(op="placeholder"))
        users = [node for node, spec in zip(nodes, specs, strict=True) if spec.kind is InputKind.USER_INPUT]
        values = self._user_inputs(names, users)
        for node, spec in zip(nodes, specs, strict=True):
            if spec.kind is InputKind.USER_INPUT:
                continue
            if spec.target is None or not hasattr(self._tensor(spec.target), "dtype"):
                raise TaskError(f"cannot be printed: it uses `{spec.target}`, which is not a tensor")
            if node.users:
                values[node] = self._attribute(spec.target, node)
        return [values.get(node) for node in nodes]

    def _tensor(self, name: str) -> Any:
        state = self.exported.state_dict
        return state[name] if name in state else self.exported.constants.get(name)

    def _attribute(self, name: str, like: torch.fx.Node) -> torch.fx.Node:
        self.tensors[name] = self._tensor(name)
        node = self.graph.create_node("get_attr", name, name=like.name)
        node.meta = dict(like.meta)
        return node

    def _user_inputs(self, names: Sequence[str], leaves: Sequence[torch.fx.Node]) -> dict[torch.fx.Node, Any]:
        """A placeholder per argument of the call; a getitem chain for each leaf of a nested one."""
        import torch.utils._pytree as pytree

        spec = self.exported.call_spec.in_spec
        assert spec is not None
        args, kwargs = pytree.tree_unflatten(list(leaves), spec)
        values: dict[torch.fx.Node, Any] = {}
        for name, tree in [*zip(names, args, strict=True), *kwargs.items()]:
            holder = self.graph.placeholder(name)
            for path, leaf in _leaves(tree):
                value = holder
                for key in path:
                    value = self.graph.call_function(operator.getitem, (value, key))
                value.meta = dict(leaf.meta)
                values[leaf] = value
        return values

    def _inline(self, module: torch.fx.GraphModule, inputs: Sequence[Any]) -> list[Any]:
        """Copy the nodes of `module` behind the nodes there are; returns the values it outputs."""
        environment: dict[torch.fx.Node, Any] = {}
        queue = iter(inputs)
        for node in module.graph.nodes:
            if node.op == "placeholder":
                environment[node] = next(queue)
            elif node.op == "get_attr":
                environment[node] = _attribute_of(module, node.target)
            elif node.op == "output":
                return list(_mapped(node.args[0], environment))
            else:
                environment[node] = self._call(node, environment)
        raise AssertionError("an exported graph ends with an output node")

    def _call(self, node: torch.fx.Node, environment: dict[torch.fx.Node, Any]) -> Any:
        args, kwargs = _mapped(node.args, environment), _mapped(node.kwargs, environment)
        name = getattr(node.target, "__name__", str(node.target))
        if name == "wrap_with_set_grad_enabled":  # forward only, under no_grad on both sides: the mode changes nothing
            return self._inline(args[1], args[2:])
        if name == "wrap_with_autocast":
            return self._autocast(args)
        if node.target is operator.getitem and isinstance(args[0], list):
            return args[0][args[1]]
        if _is_assertion(node.target):
            return None
        if type(node.target).__module__.startswith("torch._higher_order_ops") or name in ("cond", "while_loop"):
            raise TaskError(f"cannot be printed: it uses the control-flow operator `{name}`")
        copied = self.graph.create_node("call_function", node.target, args, kwargs, name=node.name)
        copied.meta = dict(node.meta)
        return copied

    def _autocast(self, args: Sequence[Any]) -> list[Any]:
        import torch

        device, dtype, enabled, cache, body, *inputs = args
        mode = self.graph.call_function(torch.amp.autocast_mode._enter_autocast, (device, dtype, enabled, cache))
        results = self._inline(body, inputs)
        self.graph.call_function(torch.amp.autocast_mode._exit_autocast, (mode,))
        return results


def _erase_unused_numbers(graph: torch.fx.Graph) -> None:
    """Drop shape arithmetic that only assertions read, and results of a call that nothing reads."""
    for node in reversed(list(graph.nodes)):
        home = getattr(node.target, "__module__", None)
        if node.op == "call_function" and not node.users and (home == "_operator" or _is_size(node.target)):
            graph.erase_node(node)


def _is_size(target: Any) -> bool:
    return str(target) in ("aten.sym_size.int", "aten.sym_numel.default")


def _is_assertion(target: Any) -> bool:
    schema = getattr(target, "_schema", None)
    return schema is not None and schema.name in _ASSERTIONS


def _mapped(value: Any, environment: Mapping[torch.fx.Node, Any]) -> Any:
    """`value` with nodes replaced by what stands for them; nested modules and lists are put in as they are."""
    import torch

    if isinstance(value, torch.fx.Node):
        return environment[value]
    if isinstance(value, slice):
        return slice(*(_mapped(part, environment) for part in (value.start, value.stop, value.step)))
    if isinstance(value, list):
        return [_mapped(item, environment) for item in value]
    if isinstance(value, tuple):
        return tuple(_mapped(item, environment) for item in value)
    if isinstance(value, dict):
        return {key: _mapped(item, environment) for key, item in value.items()}
    return value


def _attribute_of(module: torch.nn.Module, name: str) -> Any:
    return operator.attrgetter(name)(module)


def _leaves(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], torch.fx.Node]]:
    """(keys, node) of every leaf of an argument; raises TaskError for containers other than tuple, list and dict."""
    import torch

    if isinstance(tree, torch.fx.Node):
        yield path, tree
    elif type(tree) in (tuple, list):
        for index, item in enumerate(tree):
            yield from _leaves(item, (*path, index))
    elif isinstance(tree, dict):
        for key, item in tree.items():
            yield from _leaves(item, (*path, key))
    else:
        raise TaskError(f"an argument holds a {type(tree).__name__}; pass tensors, numbers, tuples, lists or dicts")


def _structure(spec: Any, results: Iterator[Any]) -> Any:
    """The value that `forward` returns, rebuilt from its flat results in the original containers."""
    if spec.is_leaf():
        return next(results)
    children = [_structure(child, results) for child in spec.children()]
    if spec.type is tuple:
        return tuple(children)
    if spec.type is list:
        return children
    if (
        isinstance(spec.type, type)
        and issubclass(spec.type, dict)
        and spec.type.__module__ in ("builtins", "collections")
    ):
        return dict(zip(spec.context, children, strict=True))
    if spec.type is type(None):
        return None
    kind = spec.type if isinstance(spec.type, type) else spec.context  # of a named tuple the class
    raise OtherReturn(getattr(kind, "__name__", str(kind)))
