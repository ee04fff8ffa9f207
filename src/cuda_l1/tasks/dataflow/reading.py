"""From a task's text to the graph of `Model.forward`, by following the text: nothing of it is executed.

Constructors and calls into the file's own classes and functions are followed with the values that
`get_init_inputs` gives; loops over what is known are unrolled; tensors are symbols.
"""

from __future__ import annotations

import ast
from typing import Any

from cuda_l1.tasks.dataflow.arithmetic import binary, truth
from cuda_l1.tasks.dataflow.expressions import Expressions
from cuda_l1.tasks.dataflow.graph import SIZE, Node
from cuda_l1.tasks.dataflow.values import Class, Function, Names, Own, Returned, Unreadable

__all__ = ["Unreadable", "read_graph"]


def read_graph(source: str, class_name: str = "Model") -> Any:
    """What `forward` of the class returns: a Node, or a tuple or dict of them.

    Raises Unreadable for control flow that depends on data, and for constructs outside of what is followed.
    """
    try:
        reader = _Reader(ast.parse(source))
        return Node("outputs", (reader.outputs(class_name),)).args[0]  # as it is now, and no deeper than may be
    except RecursionError:
        raise Unreadable("it calls itself without an end that the text shows") from None
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, SyntaxError, MemoryError) as error:
        raise Unreadable(f"{type(error).__name__}: {error}") from None


class _Reader(Expressions):
    """Statements; what an expression means is the parent class's."""

    def outputs(self, class_name: str) -> Any:
        model = self.instance(self.global_value(class_name), self._init_inputs(), {})
        if not isinstance(model, Own):
            raise Unreadable(f"{class_name} is not a class of the file")
        forward = self.method(model, "forward")
        if not isinstance(forward, Function) or not isinstance(forward.node, ast.FunctionDef):
            raise Unreadable(f"{class_name} has no forward")
        arguments = forward.node.args
        inputs = [Node("input") for _ in [*arguments.posonlyargs, *arguments.args][1:]]
        count = len(inputs) - len(arguments.defaults)
        given = self._input_count()
        return self.apply(forward, inputs[: max(count, min(given, len(inputs)))], {})

    def _init_inputs(self) -> list[Any]:
        if "get_init_inputs" not in self.top:
            return []
        found = self.apply(self.global_value("get_init_inputs"), [], {})
        if isinstance(found, (list, tuple)):
            return list(found)
        raise Unreadable("get_init_inputs returns something else than a list")

    def _input_count(self) -> int:
        """How many arguments `get_inputs` gives, 0 where that cannot be read."""
        try:
            found = self.apply(self.global_value("get_inputs"), [], {})
        except (Unreadable, ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
            return 0
        return len(found) if isinstance(found, (list, tuple)) else 1

    def body(self, statements: list[ast.stmt], names: Names) -> None:
        """Follow statements in order; raises Returned at a `return`."""
        for statement in statements:
            self.spend(None)
            self._statement(statement, names)

    def _statement(self, node: ast.stmt, names: Names) -> None:
        match node:
            case ast.Return():
                raise Returned(None if node.value is None else self.value(node.value, names))
            case ast.Assign():
                value = self.value(node.value, names)
                for target in node.targets:
                    self.assign(target, value, names)
            case ast.AnnAssign():
                if node.value is not None:
                    self.assign(node.target, self.value(node.value, names), names)
            case ast.AugAssign():
                value = binary(node.op, self.value(node.target, names), self.value(node.value, names))
                self.assign(node.target, value, names)
            case ast.Expr():
                self._expression(node.value, names)
            case ast.If():
                self._if(node, names)
            case ast.For():
                self._for(node, names)
            case ast.With():
                self.body(node.body, names)
            case ast.FunctionDef():
                names[node.name] = Function(node, names)
            case ast.ClassDef():
                names[node.name] = Class(node)
            case ast.Import() | ast.ImportFrom():
                self.imported(node, names)
            case ast.Assert() | ast.Pass() | ast.Global() | ast.Delete():
                pass
            case _:
                raise Unreadable(f"line {node.lineno}: {type(node).__name__.lower()}")

    def _expression(self, node: ast.expr, names: Names) -> None:
        """A call for its effect: `x.add_(y)` binds x anew, `layers.append(y)` changes a list."""
        value = self.value(node, names)
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return
        owner = node.func.value
        changes = node.func.attr.endswith("_") and not node.func.attr.endswith("__")
        if changes and isinstance(value, Node) and isinstance(owner, (ast.Name, ast.Attribute, ast.Subscript)):
            self.assign(owner, value, names)

    def _if(self, node: ast.If, names: Names) -> None:
        condition = truth(self.value(node.test, names))
        if condition is not None:
            return self.body(node.body if condition else node.orelse, names)
        if not node.orelse and isinstance(node.body[-1], ast.Raise):  # a check of the arguments
            return None
        raise Unreadable(f"line {node.lineno}: a branch whose condition is not known")

    def _for(self, node: ast.For, names: Names) -> None:
        items = self.value(node.iter, names)
        if isinstance(items, (list, tuple, range, dict)):
            for item in list(items):
                self.assign(node.target, item, names)
                self.body(node.body, names)
            return None
        return self._open_loop(node, items, names)

    def _open_loop(self, node: ast.For, items: Any, names: Names) -> None:
        """A loop of unknown length: one pass over its body, with symbols for what a pass hands to the next."""
        carried = sorted(_bound(node.body) & names.keys() - _bound_target(node.target))
        before = {name: names[name] for name in carried}
        symbols = {name: None if isinstance(names[name], list) else Node("carried") for name in carried}
        for name, symbol in symbols.items():
            names[name] = symbol or []
        self.assign(node.target, Node("item", (items,)), names)
        lists = {name: value for name, value in names.items() if isinstance(value, list)}
        lengths = {name: len(value) for name, value in lists.items()}
        self.body(node.body, names)
        for name in carried:
            names[name] = Node("loop", (items, before[name], symbols[name], names[name]))
        for name, value in lists.items():
            if name not in carried and len(value) > lengths[name]:
                grown = value[lengths[name] :]
                del value[lengths[name] :]
                value.append(Node("collected", (items, tuple(grown))))

    def assign(self, target: ast.expr, value: Any, names: Names) -> None:
        """Bind a target: a name, an attribute, elements, or a part of a tensor."""
        match target:
            case ast.Name():
                names[target.id] = value
            case ast.Attribute():
                self.set_attribute(self.value(target.value, names), target.attr, value)
            case ast.Tuple() | ast.List():
                self._unpack(target.elts, value, names)
            case ast.Subscript():
                owner, index = self.value(target.value, names), self.value(target.slice, names)
                if isinstance(owner, (list, dict)) and not isinstance(index, Node):
                    owner[index] = value
                else:
                    changed = Node("setitem", (owner, index, value))
                    self.assign(target.value, changed, names)
            case _:
                raise Unreadable(f"line {target.lineno}: this kind of assignment")

    def _unpack(self, targets: list[ast.expr], value: Any, names: Names) -> None:
        star = next((i for i, target in enumerate(targets) if isinstance(target, ast.Starred)), None)
        if isinstance(value, (list, tuple, range)):
            parts = list(value)
        elif isinstance(value, Node):
            size = value.op == "shape" or value is SIZE
            parts = [SIZE if size else Node("getitem", (value, i)) for i in range(len(targets))]
            if star is not None:
                parts[star] = [Node("rest", (value, star))]
                return self._bind(targets, parts, names)
        else:
            raise Unreadable(f"line {targets[0].lineno}: unpacks something that is not known")
        if star is not None:
            tail = len(targets) - star - 1
            parts = [*parts[:star], parts[star : len(parts) - tail], *parts[len(parts) - tail :]]
        return self._bind(targets, parts, names)

    def _bind(self, targets: list[ast.expr], parts: list[Any], names: Names) -> None:
        for target, part in zip(targets, parts, strict=True):
            self.assign(target.value if isinstance(target, ast.Starred) else target, part, names)


def _bound(statements: list[ast.stmt]) -> set[str]:
    return {
        child.id
        for statement in statements
        for child in ast.walk(statement)
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store)
    }


def _bound_target(target: ast.expr) -> set[str]:
    return {child.id for child in ast.walk(target) if isinstance(child, ast.Name)}
