"""Whether a candidate is the reference under another name: its class, and whatever of the text that class uses."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

Bindings = Mapping[str, tuple[str, ...]]
"""What each name that a class uses stands for, one text for each time that it is bound or changed."""


def same_program(reference: str, candidate: str) -> bool:
    """Whether `ModelNew` is the reference's `Model`, and each function, class, value and import that it uses is the
    reference's too; docstrings, comments and formatting aside."""
    one, other = _used(reference, "Model"), _used(candidate, "ModelNew")
    return one is not None and one == other


@dataclass
class _Text:
    """A text's statements by the names that they bind or change."""

    told: dict[str, list[str]] = field(default_factory=dict)
    needs: dict[str, set[str]] = field(default_factory=dict)
    """Names of the text's that whatever a name stands for uses."""

    def add(self, name: str, told: str, needs: set[str]) -> None:
        before = self.told.setdefault(name, [])
        if before[-1:] != [told]:  # `import torch` and `import torch.nn` bind one name to one thing
            before.append(told)
        self.needs.setdefault(name, set()).update(needs)


def _used(source: str, name: str) -> dict[str, tuple[str, ...]] | None:
    """The class `name`, called `Model`, and what it uses; None where there is none, or the text is no Python. It may be
    another name of a class of the text: `ModelNew = Model`."""
    try:
        tree = ast.parse(source)
        text = _read(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    if name not in classes and len(text.told.get(name, ())) == 1:
        name = next(filter(None, (_aliased(node, name) for node in tree.body)), name)
    if name not in classes:
        return None
    reached, waiting = set[str](), {name}
    while waiting:
        one = waiting.pop()
        reached.add(one)
        waiting |= text.needs.get(one, set()) - reached
    found = {_renamed(one, name): tuple(text.told[one]) for one in reached if one in text.told}
    return {one: tuple(_renamed(told, name) for told in texts) for one, texts in found.items()}


def _aliased(node: ast.stmt, name: str) -> str | None:
    """The other name in a statement `name = other`."""
    if not (isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.Name)):
        return None
    target = node.targets[0]
    return node.value.id if isinstance(target, ast.Name) and target.id == name else None


def _renamed(text: str, name: str) -> str:
    return "Model" if text == name else text.replace(f"'{name}'", "'Model'")


def _read(tree: ast.Module) -> _Text:
    text = _Text()
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            for name, path in _imported(statement):
                # A package that the text changes is changed under each of its names.
                text.add(name, f"import {path}", {f"package {path.partition('.')[0]}"})
            continue
        names = symtable.symtable(ast.unparse(statement), "text", "exec")
        needs = set(_globals(names))
        bound = {symbol.get_name() for symbol in names.get_symbols() if _is_bound(symbol)}
        for name in sorted(bound | _changed(statement, text)):
            text.add(name, ast.dump(_without_docstrings(statement)), needs)
    return text


def _imported(statement: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """(name, what it stands for) of an import, whichever way it is written."""
    for alias in statement.names:
        if isinstance(statement, ast.ImportFrom):
            yield alias.asname or alias.name, f"{'.' * statement.level}{statement.module or ''}.{alias.name}"
        elif alias.asname:
            yield alias.asname, alias.name
        else:
            package = alias.name.partition(".")[0]
            yield package, package


def _is_bound(symbol: symtable.Symbol) -> bool:
    return symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()


def _globals(names: symtable.SymbolTable) -> Iterator[str]:
    """The names of the text that a statement uses, in functions and classes within it too."""
    is_module = names.get_type() == "module"
    for symbol in names.get_symbols():
        if symbol.is_referenced() and (is_module or symbol.is_global()):
            yield symbol.get_name()
    for inner in names.get_children():
        yield from _globals(inner)


def _changed(statement: ast.stmt, text: _Text) -> set[str]:
    """The names whose values a statement may change without binding them: `torch.relu = mine`, `setattr(Model, ...)`,
    `torch.backends.cudnn.benchmark = True`; of a module its package."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return set()
    roots = set()
    for node in ast.walk(statement):
        is_target = isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)
        if is_target or (isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)):
            roots |= {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    packages = {need for name in roots for need in text.needs.get(name, ()) if need.startswith("package ")}
    return roots | packages


def _without_docstrings(statement: ast.stmt) -> ast.stmt:
    for node in ast.walk(statement):
        if (
            isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return statement
