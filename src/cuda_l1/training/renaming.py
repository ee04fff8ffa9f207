"""The same task and variants under other names, so that an answer's names have to be read in its question.

A policy from nothing learns by heart which attributes and arguments tasks tend to have, and asks for those where a task
has others.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Iterator, Sequence
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
        trees = [ast.parse(text) for text in texts]
    except SyntaxError:
        return reference, list(variants)
    taken = {word for text in texts for word in re.findall(r"\w+", text)}
    classes = {node.name for node in _classes(trees[0])} | {"ModelNew"}
    fixed = {word for tree in trees for word in (*_said(tree), *_of_others(tree, classes))}
    stored = (node for node in _of_self(trees[0], classes) if isinstance(node.ctx, ast.Store))
    attributes = _new_names(dict.fromkeys(node.attr for node in stored), fixed, taken, rng)
    arguments = _new_names(_arguments(trees), fixed, taken, rng)
    made = [
        _written(text, [*_uses_of_self(tree, classes, attributes), *_uses_of_arguments(tree, arguments)])
        for text, tree in zip(texts, trees, strict=True)
    ]
    if None in made:
        return reference, list(variants)
    first, *others = (text for text in made if text is not None)
    return first, others


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
    """Strings that name something, keywords of calls, and arguments of functions inside others."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from node.value.split(".") if re.fullmatch(r"[\w.]+", node.value) else ()
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg
        elif isinstance(node, ast.Lambda):
            yield from (each.arg for each in _all_arguments(node.args))
        elif isinstance(node, ast.FunctionDef):
            inner = (other for other in ast.walk(node) if isinstance(other, ast.FunctionDef) and other is not node)
            yield from (each.arg for other in inner for each in _all_arguments(other.args))


def _all_arguments(arguments: ast.arguments) -> list[ast.arg]:
    further = [each for each in (arguments.vararg, arguments.kwarg) if each]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *further]


def _classes(tree: ast.Module) -> list[ast.ClassDef]:
    return [node for node in tree.body if isinstance(node, ast.ClassDef)]


def _of_self(tree: ast.Module, classes: Container[str]) -> Iterator[ast.Attribute]:
    """Attributes of `self` in these classes."""
    for each in _classes(tree):
        for node in ast.walk(each) if each.name in classes else ():
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
                yield node


def _of_others(tree: ast.Module, classes: Container[str]) -> Iterator[str]:
    """Names of all other attributes."""
    own = {id(node) for node in _of_self(tree, classes)}
    return (node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and id(node) not in own)


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


def _uses_of_self(tree: ast.Module, classes: Container[str], new: dict[str, str]) -> Iterator[_Place]:
    for node in _of_self(tree, classes):
        if node.attr in new:
            assert node.end_lineno is not None and node.end_col_offset is not None
            yield _Place(node.end_lineno, node.end_col_offset - len(node.attr.encode()), node.attr, new[node.attr])


def _uses_of_arguments(tree: ast.Module, new: dict[str, str]) -> Iterator[_Place]:
    for forward in _forwards(tree):
        for node in ast.walk(forward):
            name = node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else None
            if name in new:
                assert isinstance(node, ast.Name | ast.arg)
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
