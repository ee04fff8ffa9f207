"""What the expressions of a task's text stand for: constants, tensors as nodes, layers, instances of its classes."""

from __future__ import annotations

import ast
import math
import operator
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from cuda_l1.tasks.dataflow import spelling
from cuda_l1.tasks.dataflow.graph import SIZE, Node
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

_BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", operator.truediv),
    ast.FloorDiv: ("floordiv", operator.floordiv),
    ast.Mod: ("remainder", operator.mod),
    ast.Pow: ("pow", operator.pow),
    ast.MatMult: ("matmul", operator.matmul),
    ast.BitAnd: ("bitwiseand", operator.and_),
    ast.BitOr: ("bitwiseor", operator.or_),
    ast.BitXor: ("bitwisexor", operator.xor),
    ast.LShift: ("lshift", operator.lshift),
    ast.RShift: ("rshift", operator.rshift),
}
_COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("eq", operator.eq),
    ast.NotEq: ("ne", operator.ne),
    ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le),
    ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge),
    ast.Is: ("is", operator.is_),
    ast.IsNot: ("isnot", operator.is_not),
    ast.In: ("in", lambda a, b: a in b),
    ast.NotIn: ("notin", lambda a, b: a not in b),
}
_UNARY: dict[type[ast.unaryop], tuple[str, Callable[[Any], Any]]] = {
    ast.USub: ("neg", operator.neg),
    ast.UAdd: ("pos", operator.pos),
    ast.Not: ("not", operator.not_),
    ast.Invert: ("bitwisenot", operator.invert),
}
_BUILTINS: dict[str, Callable[..., Any]] = {
    "range": range,
    "len": len,
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
    "max": max,
    "min": min,
    "sum": sum,
    "abs": abs,
    "round": round,
    "tuple": tuple,
    "list": list,
    "dict": dict,
    "set": lambda items=(): sorted(set(items)),
    "sorted": sorted,
    "reversed": lambda items: list(reversed(items)),
    "enumerate": lambda items, start=0: list(enumerate(items, start)),
    "zip": lambda *items: list(zip(*items, strict=False)),
    "print": lambda *_, **__: None,
}
_CONSTANTS = {"torch.inf": math.inf, "math.inf": math.inf, "math.pi": math.pi, "torch.pi": math.pi, "math.e": math.e}
_SIZE_METHODS = frozenset({"size", "numel", "dim", "nelement", "ndimension", "element_size"})
_SHAPES = frozenset({"shape", "ndim", "itemsize"})
_PLAIN = (int, float, str, bool, complex, type(None))
_LONGEST_RANGE = 4096


class Expressions:
    """The names at the top of one file, and the meaning of expressions over them."""

    def __init__(self, tree: ast.Module) -> None:
        self.top: dict[str, ast.stmt] = {}
        self.known: Names = {}
        self.steps = 0
        for statement in tree.body:
            self._declare(statement)

    def _declare(self, statement: ast.stmt) -> None:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            self.top[statement.name] = statement
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            self.imported(statement, self.known)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                for child in ast.walk(target):
                    if isinstance(child, ast.Name):
                        self.top[child.id] = statement

    def imported(self, node: ast.Import | ast.ImportFrom, names: Names) -> None:
        """Bind what an import binds."""
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                names[alias.asname or alias.name] = Dotted(f"{node.module}.{alias.name}")
            else:
                names[alias.asname or alias.name.partition(".")[0]] = Dotted(
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )

    def global_value(self, name: str) -> Any:
        """What a name at the top of the file stands for; raises Unreadable."""
        if name in self.known:
            return self.known[name]
        statement = self.top.get(name)
        if isinstance(statement, ast.FunctionDef):
            self.known[name] = Function(statement)
        elif isinstance(statement, ast.ClassDef):
            self.known[name] = Class(statement)
        elif statement is not None:
            del self.top[name]  # an assignment that reads its own name sees nothing
            self.body([statement], self.known)
        elif name in _BUILTINS:
            return Builtin(_BUILTINS[name])
        else:
            raise Unreadable(f"the name {name}")
        return self.known[name]

    @abstractmethod
    def body(self, statements: list[ast.stmt], names: Names) -> None: ...

    @abstractmethod
    def assign(self, target: ast.expr, value: Any, names: Names) -> None: ...

    # ── expressions ───────────────────────────────────────────────────────────────────────────────

    def value(self, node: ast.expr, names: Names) -> Any:
        """What an expression stands for."""
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return names[node.id] if node.id in names else self.global_value(node.id)
            case ast.Attribute():
                return self.attribute(self.value(node.value, names), node.attr)
            case ast.Call():
                return self._call(node, names)
            case ast.BinOp():
                return self.binary(node.op, self.value(node.left, names), self.value(node.right, names))
            case ast.UnaryOp():
                return self._unary(node, names)
            case ast.Compare():
                return self._compare(node, names)
            case ast.BoolOp():
                return self._boolean(node, names)
            case ast.Tuple():
                return tuple(self._elements(node.elts, names))
            case ast.List() | ast.Set():
                return self._elements(node.elts, names)
            case ast.Dict():
                return self._dict(node, names)
            case ast.Subscript():
                return self._item(self.value(node.value, names), self.value(node.slice, names))
            case ast.Slice():
                parts = (node.lower, node.upper, node.step)
                return slice(*(None if part is None else self.value(part, names) for part in parts))
            case ast.IfExp():
                return self._choice(node, names)
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
                return self._gathered(node, dict(names))
            case ast.DictComp():
                pairs = ast.Tuple([node.key, node.value], ast.Load())
                return dict(self._comprehension(node.generators, pairs, dict(names)))
            case ast.Lambda():
                return Function(node, names)
            case ast.JoinedStr():
                return "".join(str(self.value(part, names)) for part in node.values)
            case ast.FormattedValue():
                return self.value(node.value, names)
        raise Unreadable(f"line {node.lineno}: {type(node).__name__}")

    def _elements(self, nodes: list[ast.expr], names: Names) -> list[Any]:
        values: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                values += _listed(self.value(node.value, names))
            else:
                values.append(self.value(node, names))
        return values

    def _dict(self, node: ast.Dict, names: Names) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                found |= self.value(value, names)
            else:
                found[self.value(key, names)] = self.value(value, names)
        return found

    def _gathered(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, names: Names) -> Any:
        """A list; of a tensor's parts, whose number is not known, one node with what becomes of each."""
        items = self.value(node.generators[0].iter, names)
        if not isinstance(items, Node):
            return list(self._comprehension(node.generators, node.elt, names))
        self.assign(node.generators[0].target, Node("item", (items,)), names)
        return Node("collected", (items, (self.value(node.elt, names),)))

    def _comprehension(self, generators: list[ast.comprehension], element: ast.expr, names: Names) -> Iterator[Any]:
        if not generators:
            yield self.value(element, names)
            return
        first, *rest = generators
        for item in _listed(self.value(first.iter, names)):
            self.assign(first.target, item, names)
            if all(self._decided(test, names) for test in first.ifs):
                yield from self._comprehension(rest, element, names)

    def _decided(self, node: ast.expr, names: Names) -> bool:
        found = self.truth(self.value(node, names))
        if found is None:
            raise Unreadable(f"line {node.lineno}: a condition that is not known")
        return found

    def _choice(self, node: ast.IfExp, names: Names) -> Any:
        condition = self.value(node.test, names)
        known = self.truth(condition)
        if known is not None:
            return self.value(node.body if known else node.orelse, names)
        return Node("choice", (condition, self.value(node.body, names), self.value(node.orelse, names)))

    def truth(self, value: Any) -> bool | None:
        """Whether a value counts as true; None where that is not known from the text."""
        if isinstance(value, (*_PLAIN, list, tuple, dict, range)):
            return bool(value)
        return None if isinstance(value, (Node, Dotted)) else True

    def _boolean(self, node: ast.BoolOp, names: Names) -> Any:
        is_and = isinstance(node.op, ast.And)
        unknown = []
        value: Any = None
        for part in node.values:
            value = self.value(part, names)
            known = self.truth(value)
            if known is None:
                unknown.append(value)
            elif known is not is_and:
                return value
        return Node("and" if is_and else "or", tuple(unknown)) if unknown else value

    def _compare(self, node: ast.Compare, names: Names) -> Any:
        left = self.value(node.left, names)
        results: list[Any] = []
        for kind, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.value(right_node, names)
            name, compute = _COMPARE[type(kind)]
            if name in ("is", "isnot") and (left is None or right is None):
                results.append((left is right) is (name == "is"))
            elif isinstance(left, (*_PLAIN, tuple, list)) and isinstance(right, (*_PLAIN, tuple, list, dict)):
                results.append(compute(left, right))
            else:
                results.append(Node(name, (left, right)))
            left = right
        if len(results) == 1:
            return results[0]
        return Node("and", tuple(results)) if any(isinstance(r, Node) for r in results) else all(results)

    def _unary(self, node: ast.UnaryOp, names: Names) -> Any:
        value = self.value(node.operand, names)
        name, compute = _UNARY[type(node.op)]
        if name == "not" and (known := self.truth(value)) is not None:
            return not known
        if isinstance(value, _PLAIN):
            return compute(value)
        return SIZE if value is SIZE else Node(name, (value,))

    def binary(self, op: ast.operator, left: Any, right: Any) -> Any:
        """`left op right`: computed on constants, one SIZE on sizes, a node on tensors."""
        name, compute = _BINARY[type(op)]
        if isinstance(left, (*_PLAIN, list, tuple)) and isinstance(right, (*_PLAIN, list, tuple)):
            if name == "pow" and isinstance(left, int) and isinstance(right, float):
                return SIZE  # dim ** -0.5
            return compute(left, right)
        if all(side is SIZE or isinstance(side, (int, float)) for side in (left, right)):
            return SIZE
        return Node(name, (left, right))

    def _item(self, owner: Any, index: Any) -> Any:
        if isinstance(owner, Chain):
            found = owner.layers[index]
            return Chain(found) if isinstance(found, list) else found
        if isinstance(owner, (list, tuple, dict, str, range)) and not isinstance(index, Node):
            return owner[index]
        if owner is SIZE or (isinstance(owner, Node) and owner.op == "shape"):
            return [Node("shape", (owner,))] if isinstance(index, slice) else SIZE
        return Node("getitem", (owner, _index(index)))

    # ── attributes and calls ──────────────────────────────────────────────────────────────────────

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

    def _call(self, node: ast.Call, names: Names) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return Parent(names["self"])
        if isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "hasattr"):
            return self._is(*(self.value(arg, names) for arg in node.args))
        function = self.value(node.func, names)
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value, names)
            keywords |= value if keyword.arg is None else {keyword.arg: value}
        return self.apply(function, self._elements(node.args, names), keywords)

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
                return self._library(function.path, args, keywords)
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
            return self._added(flat)
        args = [arg.layers if isinstance(arg, Chain) else arg for arg in args]
        return function.call(*args, **keywords)

    def _added(self, items: list[Any]) -> Any:
        total = items[0]
        for item in items[1:]:
            total = self.binary(ast.Add(), total, item)
        return total

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
            return _converted(owner, [*args, *keywords.values()])
        if name in ("type_as", "expand_as", "reshape_as", "view_as"):
            return owner if name == "type_as" else Node(name, (owner, *args))
        return _operator(name, [owner, *args], keywords)

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

    def _library(self, path: str, args: list[Any], keywords: dict[str, Any]) -> Any:
        module, _, name = path.rpartition(".")
        if module in ("torch.nn", "torch.nn.modules") and name[:1].isupper():
            return self._layer(name, args, keywords)
        if module.endswith("nn.init") or path in ("torch.manual_seed", "torch.no_grad", "torch.device"):
            return args[0] if args else None
        if module == "math":
            return self._mathematics(name, args)
        if path in ("collections.OrderedDict", "typing.cast", "copy.deepcopy"):
            return args[-1] if args else {}
        if path == "functools.partial":
            raise Unreadable("functools.partial")
        if module == "torch" and name in spelling.DRAWN:
            return _drawn(name, args, keywords)
        if module.split(".")[0] in ("torch", "F"):
            return _operator(name, args, keywords)
        return Node(f"library.{path}", tuple(args), tuple(sorted(keywords.items())))

    def _layer(self, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
        if name in ("Sequential", "ModuleList"):
            items = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple, dict)) else args
            items = [pair[1] if isinstance(pair, tuple) else pair for pair in _listed(items)]
            return Chain(items) if name == "Sequential" else items
        if name in ("ModuleDict", "ParameterDict", "ParameterList"):
            return args[0] if args else {}
        if name in ("Parameter", "Buffer"):
            return Node("weight", ("parameter",))
        op = spelling.operator_name(name)
        options = spelling.layer_options(op, args, keywords)
        return Layer(op, options, (Node("weight", (op,)),) if op in spelling.WEIGHTED else ())

    def _mathematics(self, name: str, args: list[Any]) -> Any:
        if any(isinstance(arg, Node) for arg in args) or (name in ("sqrt", "log", "log2") and type(args[0]) is int):
            return SIZE  # 1 / sqrt(width of a head): a number that follows from a size
        return getattr(math, name)(*args)


def _operator(name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Tensors first, then settings; tensors given by keyword are operands like the others."""
    keywords = {"input": keywords["input"], **keywords} if "input" in keywords else keywords
    operands = [keywords.pop("input")] if "input" in keywords else []
    settings: list[Any] = []
    for arg in args:
        first = not operands or (isinstance(arg, Node) and not settings and arg is not SIZE)
        (operands if first else settings).append(arg)
    if name in ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "where", "true_divide") and settings:
        operands, settings = [*operands, *settings], []
    if isinstance(operands[0] if operands else None, (list, tuple)):
        operands[0] = tuple(operands[0])
    operands += [keywords.pop(key) for key in ("other", "target", "mat2") if key in keywords]
    if not operands:
        return Node(name, (), tuple(sorted(keywords.items())))
    return spelling.call(name, operands, settings, dict(keywords))


def _drawn(name: str, args: list[Any], keywords: dict[str, Any]) -> Node:
    """A tensor made of nothing: only how many sizes it has, and what it is filled with."""
    rest = tuple(sorted((k, v) for k, v in keywords.items() if k not in ("device", "dtype", "size", "requires_grad")))
    values = args[1:] if name == "full" else []
    return Node(name, tuple(values), rest)


def _converted(tensor: Node, args: list[Any]) -> Node:
    kinds = [arg.path for arg in args if isinstance(arg, Dotted) and arg.path.startswith("torch.")]
    kinds = [kind.removeprefix("torch.") for kind in kinds if kind not in ("torch.device", "torch.dtype")]
    return Node("to", (tensor,), (("0", Node("dtype", (kinds[0],))),)) if kinds else tensor


def _index(index: Any) -> Any:
    """An index with its slices as nodes, and its sizes as one."""
    if isinstance(index, slice):
        return Node("slice", tuple(_index(part) for part in (index.start, index.stop, index.step)))
    if isinstance(index, (tuple, list)):
        return tuple(_index(part) for part in index)
    return index


def _listed(value: Any) -> list[Any]:
    if isinstance(value, Chain):
        return list(value.layers)
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, (list, tuple, range, str)):
        return list(value)
    if isinstance(value, Node):
        return [Node("item", (value,))]
    raise Unreadable("goes through something that is not known")
