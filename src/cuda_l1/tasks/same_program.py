"""Whether two texts are one program: a class or a reference, and whatever of the text that uses."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

Bindings = Mapping[str, tuple[str, ...]]
"""What each name that is used stands for, one text for each time that it is bound or changed."""


REFERENCE = ("Model", "get_inputs", "get_init_inputs")
"""What a reference is used for."""


def same_program(reference: str, candidate: str) -> bool:
    """Whether `ModelNew` is the reference's `Model`, and each function, class, value and import that it uses is the
    reference's too; docstrings, comments and formatting aside."""
    one, other = _class_of(reference, "Model"), _class_of(candidate, "ModelNew")
    return one is not None and one == other


def same_reference(one: str, other: str) -> bool:
    """Whether two references have the same model and inputs, and whatever of the text these use is the same too;
    docstrings, comments and formatting aside."""
    if one == other:
        return True
    first, second = (_reached(text, REFERENCE) if (text := _parsed(source)) else {} for source in (one, other))
    return "Model" in first and first == second


@dataclass
class _Text:
    """A text's statements by the names that they bind or change."""

    classes: set[str]
    aliases: dict[str, str]
    """Names that a statement gives to others."""
    told: dict[str, list[str]] = field(default_factory=dict)
    needs: dict[str, set[str]] = field(default_factory=dict)
    """Names of the text's that whatever a name stands for uses."""

    def add(self, name: str, told: str, needs: set[str]) -> None:
        before = self.told.setdefault(name, [])
        if before[-1:] != [told]:  # `import torch` and `import torch.nn` bind one name to one thing
            before.append(told)
        self.needs.setdefault(name, set()).update(needs)


def _class_of(source: str, name: str) -> Bindings | None:
    """The class `name`, called `Model`, and what it uses; None where there is none, or the text is no Python. It may be
    another name of a class of the text: `ModelNew = Model`."""
    text = _parsed(source)
    if text is None:
        return None
    if name not in text.classes and len(text.told.get(name, ())) == 1:
        name = text.aliases.get(name, name)
    if name not in text.classes:
        return None
    found = _reached(text, (name,))
    return {_renamed(one, name): tuple(_renamed(told, name) for told in texts) for one, texts in found.items()}


def _reached(text: _Text, names: Iterable[str]) -> Bindings:
    """What these names of a text stand for, and whatever that uses."""
    reached, waiting = set[str](), set(names)
    while waiting:
        one = waiting.pop()
        reached.add(one)
        waiting |= text.needs.get(one, set()) - reached
    return {one: tuple(text.told[one]) for one in reached if one in text.told}


def _parsed(source: str) -> _Text | None:
    """None for a text that is no Python."""
    try:
        return _read(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _aliases(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(name, other) of each statement `name = other`."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.Name):
            target = node.targets[0]
            if isinstance(target, ast.Name):
                yield target.id, node.value.id


def _renamed(text: str, name: str) -> str:
    return "Model" if text == name else text.replace(f"'{name}'", "'Model'")


def _read(tree: ast.Module) -> _Text:
    text = _Text({node.name for node in tree.body if isinstance(node, ast.ClassDef)}, dict(_aliases(tree)))
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
