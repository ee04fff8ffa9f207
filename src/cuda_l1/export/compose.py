"""Putting the reference's text and the candidate's text into one file, so that neither changes what the other means."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator

from cuda_l1.errors import CandidateError
from cuda_l1.tasks.own_modules import held_modules

OPTIMISED = "_Optimized"
"""The name that the candidate's `ModelNew` carries inside a drop-in."""


def rename(source: str, old: str, new: str) -> str:
    """Every identifier `old` becomes `new`; strings and comments stay. `super(ModelNew, self)` must go on working."""
    lines = _lines(source)
    spots = [
        token.start
        for token in tokenize.generate_tokens(io.StringIO("".join(lines)).readline)
        if token.type == tokenize.NAME and token.string == old
    ]
    for row, column in reversed(spots):
        line = lines[row - 1]
        lines[row - 1] = line[:column] + new + line[column + len(old) :]
    return "".join(lines)


def bindings(tree: ast.Module) -> dict[str, str]:
    """What each top-level name is finally bound to, in words that are equal when they mean the same thing."""
    found: dict[str, str] = {}
    for node in tree.body:
        found.update(_bound_by(node))
    return found


def _bound_by(node: ast.stmt) -> dict[str, str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {node.name: ast.dump(node)}
        case ast.Import():
            # `import torch` and `import torch.nn` both bind `torch`, to the same module.
            roots = [(a.asname, a.name) if a.asname else (a.name.split(".")[0],) * 2 for a in node.names]
            return {name: f"import {module}" for name, module in roots}
        case ast.ImportFrom():
            return {a.asname or a.name: f"from {node.level} {node.module} import {a.name}" for a in node.names}
        case _:
            stored = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
            return dict.fromkeys(stored, ast.dump(node))


def contains(candidate: ast.Module, reference: ast.Module) -> bool:
    """Whether the candidate's text carries every top-level definition of the reference, unchanged."""
    theirs = bindings(candidate)
    return all(theirs.get(name) == dump for name, dump in bindings(reference).items())


def collide(candidate: ast.Module, reference: ast.Module) -> bool:
    """Whether a top-level name means one thing in the reference and another in the candidate, as far as can be read:
    `import *` may bind any."""
    theirs, ours = bindings(candidate), bindings(reference)
    return "*" in theirs.keys() | ours.keys() or any(theirs[name] != ours[name] for name in theirs.keys() & ours.keys())


def patches(candidate: ast.Module, reference: ast.Module) -> bool:
    """Whether the candidate's text sets or deletes attributes of what the reference defines, `Model.forward = ...`."""
    defining = (node for node in reference.body if not isinstance(node, ast.Import | ast.ImportFrom))
    own = {name for node in defining for name in _bound_by(node)}
    return any(_root(target) in own for node in ast.walk(candidate) for target in _changed_by(node))


def _changed_by(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Attribute(ctx=ast.Store() | ast.Del()):
            yield node
        case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[target, *_]):
            yield target


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def compose(reference: str, candidate: str) -> tuple[str, str | None]:
    """(body of the file, reference to embed as a string or None).

    The body defines `_Optimized`, and `Model` as well unless the second value is a string: then the two texts use one
    name for different things, or the candidate's changes what the reference defines, and the reference must live in a
    namespace of its own. Raises CandidateError when the candidate's text is not Python in UTF-8, and where both hold a
    module of their own by the same name, but not the same one.
    """
    try:
        return _composed(reference, candidate)
    except (RecursionError, MemoryError) as error:
        raise CandidateError("the candidate's or the task's text is nested too deep to be put into one file") from error


def _composed(reference: str, candidate: str) -> tuple[str, str | None]:
    require_utf8(candidate)
    reference_tree, candidate_tree = ast.parse(reference), _parse(candidate)
    _require_one_meaning(candidate_tree, reference_tree)
    body = rename(candidate, "ModelNew", OPTIMISED).strip("\n") + "\n"
    if patches(candidate_tree, reference_tree):
        return body, reference
    if contains(candidate_tree, reference_tree):
        return body, None
    if collide(candidate_tree, reference_tree):
        return body, reference
    futures = sorted({*_futures(reference_tree), *_futures(candidate_tree)})
    head = f"from __future__ import {', '.join(futures)}\n\n" if futures else ""
    original = _drop_futures(reference, reference_tree).strip("\n")
    return f"{head}{original}\n\n\n{_drop_futures(body, ast.parse(body)).strip(chr(10))}\n", None


def _require_one_meaning(candidate: ast.Module, reference: ast.Module) -> None:
    """A process has one module of a name: whoever imports it second would get the other's."""
    ours = {name: text for name, _, text in held_modules(reference)}
    for name, _, text in held_modules(candidate):
        if ours.get(name, text) != text:
            raise CandidateError(f"`{name}` is one module beside the task and another beside the candidate; rename one")


def require_utf8(text: str) -> None:
    """Raises CandidateError for a line that names another encoding: what such a text means would depend on whether that
    line is among the first two of its file."""
    try:
        found, _ = tokenize.detect_encoding(io.BytesIO(text.encode()).readline)
    except SyntaxError as error:
        raise CandidateError(f"the candidate is not Python: {error}") from error
    if found not in ("utf-8", "utf-8-sig"):
        raise CandidateError(f"the candidate says that it is written in {found}; write it in UTF-8")


def _parse(candidate: str) -> ast.Module:
    try:
        return ast.parse(candidate)
    except (SyntaxError, ValueError) as error:
        raise CandidateError(f"the candidate is not Python: {error}") from error


def _future_nodes(tree: ast.Module) -> list[ast.ImportFrom]:
    return [n for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]


def _futures(tree: ast.Module) -> list[str]:
    return [alias.name for node in _future_nodes(tree) for alias in node.names]


def _drop_futures(source: str, tree: ast.Module) -> str:
    """Without its `from __future__` lines, which must stand first in a file."""
    dropped = {line for node in _future_nodes(tree) for line in range(node.lineno, (node.end_lineno or 0) + 1)}
    return "".join(line for number, line in enumerate(_lines(source), 1) if number not in dropped)


def _lines(source: str) -> list[str]:
    """The lines as Python counts them, each with its end: a form feed or U+2028 within one ends none."""
    text = source.replace("\r\n", "\n").replace("\r", "\n")
    return [f"{line}\n" for line in text.split("\n")[:-1]] + [text.rpartition("\n")[2]]
