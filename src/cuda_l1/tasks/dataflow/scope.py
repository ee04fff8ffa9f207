"""The names at the top of a file."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from cuda_l1.tasks.dataflow.arithmetic import as_text
from cuda_l1.tasks.dataflow.values import Builtin, Class, Dotted, Function, Names, Unreadable

_BUILTINS: dict[str, Callable[..., Any]] = {
    "range": range,
    "len": len,
    "int": int,
    "float": float,
    "bool": bool,
    "str": as_text,
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

_MOST_STEPS = 2_000_000


class Scope:
    """What an import, a class, a function and an assignment at the top bind; read when first asked for."""

    def __init__(self, tree: ast.Module) -> None:
        self.top: dict[str, ast.stmt] = {}
        self.known: Names = {}
        self._left = _MOST_STEPS
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

    def spend(self, value: Any) -> None:
        """Count one step, and every element of a list: what is followed is foreign text. Raises Unreadable."""
        waiting = [value]
        while waiting:
            self._left -= 1
            if self._left < 0:
                raise Unreadable(f"it takes more than {_MOST_STEPS} steps to follow")
            found = waiting.pop()
            if isinstance(found, (list, tuple)):
                waiting += found
            elif isinstance(found, dict):
                waiting += found.values()

    @abstractmethod
    def body(self, statements: list[ast.stmt], names: Names) -> None: ...

    @abstractmethod
    def assign(self, target: ast.expr, value: Any, names: Names) -> None: ...
