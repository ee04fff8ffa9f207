"""Attributes and calls: into the file's own functions and classes, into libraries, of tensors."""

from __future__ import annotations

import ast
import math
from abc import abstractmethod
from typing import Any

from cuda_l1.tasks.dataflow import spelling
from cuda_l1.tasks.dataflow.arithmetic import binary
from cuda_l1.tasks.dataflow.graph import SIZE, Node
from cuda_l1.tasks.dataflow.library import converted, library, operator
from cuda_l1.tasks.dataflow.scope import Scope
from cuda_l1.tasks.dataflow.values import (
    Builtin,
    Chain,
    Class,
    Dotted,
    Function,
    Layer,
    Method,
    Names,
    Own,
    Parent,
    Returned,
    Unreadable,
)

_CONSTANTS = {"torch.inf": math.inf, "math.inf": math.inf, "math.pi": math.pi, "torch.pi": math.pi, "math.e": math.e}
_SIZE_METHODS = frozenset({"size", "numel", "dim", "nelement", "ndimension", "element_size"})
_SHAPES = frozenset({"shape", "ndim", "itemsize"})
_PLAIN_METHODS = frozenset(
    {"append", "extend", "insert", "pop", "reverse", "index", "count", "copy", "items", "keys", "values", "get"}
    | {"update", "setdefault", "lower", "upper", "strip", "startswith", "endswith", "split"}
)
_LONGEST_RANGE = 4096


class Calls(Scope):
    """What `a.b` and `f(x)` give."""

    @abstractmethod
    def value(self, node: ast.expr, names: Names) -> Any: ...

    @abstractmethod
    def elements(self, nodes: list[ast.expr], names: Names) -> list[Any]: ...

    def attribute(self, owner: Any, name: str) -> Any:
        """`owner.name`."""
        if isinstance(owner, Dotted):
            path = f"{owner.path}.{name}"
            return _CONSTANTS.get(path, Dotted(path))
        if isinstance(owner, Own):
            return owner.attributes[name] if name in owner.attributes else self.method(owner, name)
        if isinstance(owner, Parent):
            return Method(owner, name)
        if isinstance(owner, Class):
            return self._class_value(owner, name)
        if isinstance(owner, dict) and name in owner:  # of a ModuleDict
            return owner[name]
        if isinstance(owner, Layer) and name in ("weight", "bias", "eps", "p"):
            return Node(name, (*owner.weights, owner.op))
        if isinstance(owner, Node):
            if name in _SHAPES:
                return Node("shape", (owner,)) if name == "shape" else SIZE
            if name in ("T", "mT"):
                return spelling.call("t", [owner], [], {})
            if name in ("device", "dtype", "data"):
                return owner if name == "data" else Dotted(f"torch.{name}")
        return Method(owner, name)

    def _class_value(self, cls: Class, name: str) -> Any:
        for node in cls.node.body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return Function(node)
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                    return self.value(node.value, {})
        for base in cls.node.bases:
            found = self.value(base, {})
            if isinstance(found, Class):
                return self._class_value(found, name)
        raise Unreadable(f"{cls.node.name}.{name}")

    def method(self, own: Own, name: str) -> Any:
        """A method or class attribute of an instance; what nn.Module itself has is a Method."""
        try:
            found = self._class_value(own.cls, name)
        except Unreadable:
            return Method(own, name)
        if not isinstance(found, Function):
            return found
        decorators = [ast.unparse(d) for d in getattr(found.node, "decorator_list", [])]
        bound = Function(found.node, found.names, None if "staticmethod" in decorators else own)
        return self.apply(bound, [], {}) if "property" in decorators else bound

    def set_attribute(self, owner: Any, name: str, value: Any) -> None:
        """`owner.name = value`."""
        if isinstance(owner, Own):
            owner.attributes[name] = value

    def call(self, node: ast.Call, names: Names) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return Parent(names["self"])
        if isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "hasattr"):
            return self._is(*(self.value(arg, names) for arg in node.args))
        function = self.value(node.func, names)
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value, names)
            keywords |= value if keyword.arg is None else {keyword.arg: value}
        return self.apply(function, self.elements(node.args, names), keywords)

    def _is(self, value: Any, of: Any) -> bool:
        """`isinstance(value, of)`, and `hasattr(value, of)` where `of` is a name."""
        if isinstance(of, str):
            return isinstance(value, Own) and of in value.attributes
        kinds = of if isinstance(of, tuple) else (of,)
        if any(not isinstance(kind, (Builtin, Dotted)) for kind in kinds):
            raise Unreadable("a question after a class of the file")
        types = tuple(kind.call for kind in kinds if isinstance(kind, Builtin) and isinstance(kind.call, type))
        layers = {spelling.operator_name(kind.path.rpartition(".")[2]) for kind in kinds if isinstance(kind, Dotted)}
        op = value.op if isinstance(value, Layer) else "tensor" if isinstance(value, Node) else None
        return isinstance(value, types) or op in layers

    def apply(self, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        """What a call gives."""
        match function:
            case Builtin():
                return self._builtin(function, args, keywords)
            case Dotted():
                return library(function.path, args, keywords)
            case Method():
                return self._method(function, args, keywords)
            case Class():
                return self.instance(function, args, keywords)
            case Function():
                return self._follow(function, args, keywords)
            case Own():
                return self.apply(self.method(function, "forward"), args, keywords)
            case Layer():
                options = {**function.options, **keywords}
                return spelling.call(function.op, [*args, *function.weights], [], options)
            case Chain():
                for layer in function.layers:
                    args = [self.apply(layer, args, {})]
                return args[0]
        raise Unreadable(f"calls {function}")

    def _builtin(self, function: Builtin, args: list[Any], keywords: dict[str, Any]) -> Any:
        flat = [v for arg in args for v in (arg if isinstance(arg, (list, tuple)) else [arg])]
        if function.call is len and args and isinstance(args[0], (Node, Chain)):
            return len(args[0].layers) if isinstance(args[0], Chain) else SIZE
        if any(value is SIZE for value in flat) and function.call in (int, float, max, min, abs, round, sum):
            return SIZE
        if any(isinstance(arg, Node) for arg in args):
            if function.call in (sum, max, min, abs):
                return spelling.call(function.call.__name__, args, [], keywords)
            return Node("each", tuple(args))
        if function.call is range:
            found = range(*args)
            if len(found) > _LONGEST_RANGE:
                raise Unreadable(f"a loop of {len(found)} passes")
            return found
        if function.call is sum and any(isinstance(value, Node) for value in flat):
            return _added(flat)
        args = [arg.layers if isinstance(arg, Chain) else arg for arg in args]
        return function.call(*args, **keywords)

    def instance(self, cls: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        """An instance of a class of the file, its constructor followed."""
        if not isinstance(cls, Class):
            raise Unreadable("a class that is not of the file")
        own = Own(cls)
        constructor = self.method(own, "__init__")
        if isinstance(constructor, Function):
            self._follow(constructor, args, keywords)
        return own

    def _follow(self, function: Function, args: list[Any], keywords: dict[str, Any]) -> Any:
        names = self._arguments(function, args, keywords)
        if isinstance(function.node, ast.Lambda):
            return self.value(function.node.body, names)
        if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(function.node)):
            raise Unreadable(f"line {function.node.lineno}: a generator")
        try:
            self.body(function.node.body, names)
        except Returned as returned:
            return returned.value
        return None

    def _arguments(self, function: Function, args: list[Any], keywords: dict[str, Any]) -> Names:
        spec = function.node.args
        if function.owner is not None:
            args = [function.owner, *args]
        positional = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
        names: Names = dict(function.names)
        for arg, default in zip(reversed(positional), reversed(spec.defaults), strict=False):
            names[arg] = self.value(default, function.names)
        for kwarg, kwdefault in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
            if kwdefault is not None:
                names[kwarg.arg] = self.value(kwdefault, function.names)
        names |= dict(zip(positional, args, strict=False))
        if spec.vararg is not None:
            names[spec.vararg.arg] = tuple(args[len(positional) :])
        accepted = {*positional, *(arg.arg for arg in spec.kwonlyargs)}
        if spec.kwarg is not None:
            names[spec.kwarg.arg] = {key: value for key, value in keywords.items() if key not in accepted}
        return names | {key: value for key, value in keywords.items() if key in accepted}

    def _method(self, method: Method, args: list[Any], keywords: dict[str, Any]) -> Any:
        owner, name = method.owner, method.name
        if isinstance(owner, Parent):
            return self._parent(owner.own, name, args, keywords)
        if isinstance(owner, Own):
            return self._module_method(owner, name, args)
        if isinstance(owner, Chain):
            owner.layers += args[0] if name == "extend" else args[-1:]
            return None
        if isinstance(owner, (list, dict, str, tuple)):
            if name not in _PLAIN_METHODS:
                raise Unreadable(f"the method {name} of a {type(owner).__name__}")
            found = getattr(owner, name)(*args, **keywords)
            return list(found) if name in ("items", "keys", "values") else found
        if isinstance(owner, Layer):
            frozen = name == "eval" or (name == "train" and args[:1] == [False])
            return Layer(owner.op, {**owner.options, "frozen": True}, owner.weights) if frozen else owner
        if not isinstance(owner, Node):
            return Node(name, (owner, *args))
        if name in _SIZE_METHODS:
            return Node("shape", (owner,)) if name == "size" and not args and not keywords else SIZE
        if name in ("type", "to", "cuda", "cpu"):
            return converted(owner, [*args, *keywords.values()])
        if name in ("type_as", "expand_as", "reshape_as", "view_as"):
            return owner if name == "type_as" else Node(name, (owner, *args))
        return operator(name, [owner, *args], keywords)

    def _parent(self, own: Own, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
        for base in own.cls.node.bases:
            found = self.value(base, {})
            if isinstance(found, Class):
                function = self._class_value(found, name)
                return self._follow(Function(function.node, function.names, own), args, keywords)
        return None

    def _module_method(self, own: Own, name: str, args: list[Any]) -> Any:
        if name in ("register_buffer", "register_parameter", "add_module", "register_module"):
            own.attributes[args[0]] = args[1]
            return None
        if name in ("train", "eval", "to", "apply", "requires_grad_", "float", "cuda", "cpu"):
            return own
        if name in ("parameters", "modules", "children", "named_parameters"):
            return []
        raise Unreadable(f"the method {name}")


def _added(items: list[Any]) -> Any:
    total = items[0]
    for item in items[1:]:
        total = binary(ast.Add(), total, item)
    return total
