"""What the expressions of a task's text stand for: constants, tensors as nodes, layers, instances of its classes."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from typing import Any

from cuda_l1.tasks.dataflow.arithmetic import as_text, binary, compare, item, truth, unary
from cuda_l1.tasks.dataflow.calls import Calls
from cuda_l1.tasks.dataflow.graph import Node
from cuda_l1.tasks.dataflow.library import listed
from cuda_l1.tasks.dataflow.values import Function, Names, Unreadable


class Expressions(Calls):
    """The meaning of every kind of expression."""

    def value(self, node: ast.expr, names: Names) -> Any:
        """What an expression stands for. Raises Unreadable when the text asks for more than a task would."""
        found = self._value(node, names)
        self.spend(found)
        return found

    def _value(self, node: ast.expr, names: Names) -> Any:
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return names[node.id] if node.id in names else self.global_value(node.id)
            case ast.Attribute():
                return self.attribute(self.value(node.value, names), node.attr)
            case ast.Call():
                return self.call(node, names)
            case ast.BinOp():
                return binary(node.op, self.value(node.left, names), self.value(node.right, names))
            case ast.UnaryOp():
                return unary(node.op, self.value(node.operand, names))
            case ast.Compare():
                return self._compare(node, names)
            case ast.BoolOp():
                return self._boolean(node, names)
            case ast.Tuple():
                return tuple(self.elements(node.elts, names))
            case ast.List() | ast.Set():
                return self.elements(node.elts, names)
            case ast.Dict():
                return self._dict(node, names)
            case ast.Subscript():
                return item(self.value(node.value, names), self.value(node.slice, names))
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
                return "".join(as_text(self.value(part, names)) for part in node.values)
            case ast.FormattedValue():
                return self.value(node.value, names)
        raise Unreadable(f"line {node.lineno}: {type(node).__name__}")

    def elements(self, nodes: list[ast.expr], names: Names) -> list[Any]:
        """Values of a list or of arguments, those behind a star one by one."""
        values: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                values += listed(self.value(node.value, names))
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
        for element_of in listed(self.value(first.iter, names)):
            self.assign(first.target, element_of, names)
            if all(self._decided(test, names) for test in first.ifs):
                yield from self._comprehension(rest, element, names)

    def _decided(self, node: ast.expr, names: Names) -> bool:
        found = truth(self.value(node, names))
        if found is None:
            raise Unreadable(f"line {node.lineno}: a condition that is not known")
        return found

    def _choice(self, node: ast.IfExp, names: Names) -> Any:
        condition = self.value(node.test, names)
        known = truth(condition)
        if known is not None:
            return self.value(node.body if known else node.orelse, names)
        return Node("choice", (condition, self.value(node.body, names), self.value(node.orelse, names)))

    def _boolean(self, node: ast.BoolOp, names: Names) -> Any:
        is_and = isinstance(node.op, ast.And)
        unknown = []
        value: Any = None
        for part in node.values:
            value = self.value(part, names)
            known = truth(value)
            if known is None:
                unknown.append(value)
            elif known is not is_and:
                return value
        return Node("and" if is_and else "or", tuple(unknown)) if unknown else value

    def _compare(self, node: ast.Compare, names: Names) -> Any:
        operands = [self.value(part, names) for part in (node.left, *node.comparators)]
        results = [compare(kind, *pair) for kind, pair in zip(node.ops, itertools.pairwise(operands), strict=True)]
        if len(results) == 1:
            return results[0]
        return Node("and", tuple(results)) if any(isinstance(r, Node) for r in results) else all(results)
