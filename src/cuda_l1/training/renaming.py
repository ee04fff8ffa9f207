"""The same task and variants under other names, so that an answer's names have to be read in its question.

A policy from nothing learns by heart which attributes and arguments tasks tend to have, and asks for those where a task
has others.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import lru_cache
from random import Random
from typing import NamedTuple

WORDS = (
    "alpha", "anchor", "basis", "beta", "blend", "block", "body", "branch", "centre", "code", "core", "delta", "dense",
    "down", "edge", "enter", "factor", "features", "field", "filters", "first", "frame", "front", "gain", "gate",
    "grid", "group", "head", "hidden", "inner", "item", "key", "kind", "left", "level", "line", "link", "main", "maps",
    "middle", "mix", "node", "outer", "part", "path", "plane", "point", "pool", "prior", "proj", "query", "rate",
    "ratio", "right", "row", "scale", "second", "seen", "shift", "side", "signal", "source", "stage", "state", "stem",
    "step", "table", "tail", "tensor", "third", "token", "top", "unit", "up", "value", "view", "wide", "window",
)  # fmt: skip
"""What things are called; a digit may follow."""


class _Place(NamedTuple):
    """An identifier in a text; columns in bytes, as `ast` counts them."""

    line: int
    column: int
    old: str
    new: str


def renamed(reference: str, variants: Sequence[str], rng: Random) -> tuple[str, list[str]]:
    """`reference` and `variants` of it with other names for the attributes that its modules give themselves and for
    the arguments of `forward`; as they were where that is not safe.

    What a string names anywhere, is passed by keyword, belongs to another scope or is an attribute of something else
    too keeps its name.
    """
    texts = [reference, *variants]
    try:
        read = [_read(text) for text in texts]
    except SyntaxError:
        return reference, list(variants)
    taken = {word for text in texts for word in re.findall(r"\w+", text)}
    classes = {node.name for node in _classes(read[0].tree)} | {"ModelNew"}
    fixed = {word for each in read for word in (*each.said, *each.others(classes))}
    stored = (node for node in read[0].own(classes) if isinstance(node.ctx, ast.Store))
    attributes = _new_names(dict.fromkeys(node.attr for node in stored), fixed, taken, rng)
    arguments = _new_names(_arguments([each.tree for each in read]), fixed, taken, rng)
    made = [
        _written(text, [*_uses_of_self(each.own(classes), attributes), *_uses_of_arguments(each.in_forward, arguments)])
        for text, each in zip(texts, read, strict=True)
    ]
    if None in made:
        return reference, list(variants)
    first, *others = (text for text in made if text is not None)
    return first, others


class _Read:
    """What a text calls by name. Raises SyntaxError."""

    def __init__(self, text: str) -> None:
        self.tree = ast.parse(text)
        self.said = frozenset(_said(self.tree))
        self.in_forward = [
            node
            for forward in _forwards(self.tree)
            for node in ast.walk(forward)
            if isinstance(node, ast.Name | ast.arg)
        ]
        self._attributes = [node for node in ast.walk(self.tree) if isinstance(node, ast.Attribute)]
        self._class_of = {
            id(node): each.name
            for each in _classes(self.tree)
            for node in ast.walk(each)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
        }

    def own(self, classes: Container[str]) -> list[ast.Attribute]:
        """Attributes of `self` in these classes."""
        return [node for node in self._attributes if self._class_of.get(id(node)) in classes]

    def others(self, classes: Container[str]) -> Iterator[str]:
        """Names of all other attributes."""
        return (node.attr for node in self._attributes if self._class_of.get(id(node)) not in classes)


@lru_cache(maxsize=64)
def _read(text: str) -> _Read:
    """A task's variants are told several times, one after the other."""
    return _Read(text)


def _new_names(names: Iterable[str], fixed: set[str], taken: set[str], rng: Random) -> dict[str, str]:
    """A name that is not taken for each that is not fixed; `taken` grows."""
    new: dict[str, str] = {}
    for name in names:
        if name in fixed:
            continue
        free = [word for stem in WORDS for word in (stem, f"{stem}_{rng.randrange(1, 5)}") if word not in taken]
        new[name] = rng.choice(free)
        taken.add(new[name])
    return new


def _said(tree: ast.Module) -> Iterator[str]:
    """Strings that name something, keywords of calls, arguments of functions inside others, and names that a statement
    holds as text."""
    pending: list[tuple[ast.AST, bool]] = [(tree, False)]
    while pending:
        node, inside = pending.pop()
        is_function = isinstance(node, ast.FunctionDef)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from node.value.split(".") if re.fullmatch(r"[\w.]+", node.value) else ()
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg
        elif isinstance(node, ast.Lambda) or (isinstance(node, ast.FunctionDef) and inside):
            yield from (each.arg for each in _all_arguments(node.args))
        elif isinstance(node, ast.Global | ast.Nonlocal):
            yield from node.names
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name
        elif isinstance(node, ast.alias):
            yield node.asname or node.name
        pending += [(child, inside or is_function) for child in ast.iter_child_nodes(node)]


def _all_arguments(arguments: ast.arguments) -> list[ast.arg]:
    further = [each for each in (arguments.vararg, arguments.kwarg) if each]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *further]


def _classes(tree: ast.Module) -> list[ast.ClassDef]:
    return [node for node in tree.body if isinstance(node, ast.ClassDef)]


def _forwards(tree: ast.Module) -> list[ast.FunctionDef]:
    return [
        node
        for each in _classes(tree)
        if each.name in ("Model", "ModelNew")
        for node in each.body
        if isinstance(node, ast.FunctionDef) and node.name == "forward"
    ]


def _arguments(trees: Sequence[ast.Module]) -> list[str]:
    """Arguments of `forward`, where every one of the texts' has the same."""
    found = {tuple(each.arg for each in _all_arguments(node.args)) for tree in trees for node in _forwards(tree)}
    return [name for name in found.pop() if name != "self"] if len(found) == 1 else []


def _uses_of_self(own: Iterable[ast.Attribute], new: dict[str, str]) -> Iterator[_Place]:
    for node in own:
        if node.attr in new:
            assert node.end_lineno is not None and node.end_col_offset is not None
            yield _Place(node.end_lineno, node.end_col_offset - len(node.attr.encode()), node.attr, new[node.attr])


def _uses_of_arguments(found: Iterable[ast.Name | ast.arg], new: dict[str, str]) -> Iterator[_Place]:
    for node in found:
        name = node.id if isinstance(node, ast.Name) else node.arg
        if name in new:
            yield _Place(node.lineno, node.col_offset, name, new[name])


def _written(text: str, places: Iterable[_Place]) -> str | None:
    """The text with a new name at each place; None where a name is spelt otherwise than Python reads it, as it does
    compatibility characters."""
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    for line, column, old, new in sorted(places, reverse=True):
        before, rest = lines[line - 1][:column], lines[line - 1][column:]
        if not rest.startswith(old.encode()):
            return None
        lines[line - 1] = before + new.encode() + rest[len(old.encode()) :]
    return b"".join(lines).decode()
