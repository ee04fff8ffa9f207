"""Putting the reference's text and the candidate's text into one file, so that neither changes what the other means."""

from __future__ import annotations

import ast
import io
import tokenize

from cuda_l1.errors import CandidateError

OPTIMISED = "_Optimized"
"""The name that the candidate's `ModelNew` carries inside a drop-in."""


def rename(source: str, old: str, new: str) -> str:
    """Every identifier `old` becomes `new`; strings and comments stay. `super(ModelNew, self)` must go on working."""
    lines = source.splitlines(keepends=True)
    spots = [
        token.start
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
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
    """Whether a top-level name means one thing in the reference and another in the candidate."""
    theirs, ours = bindings(candidate), bindings(reference)
    return any(theirs[name] != ours[name] for name in theirs.keys() & ours.keys())


def compose(reference: str, candidate: str) -> tuple[str, str | None]:
    """(body of the file, reference to embed as a string or None).

    The body defines `_Optimized`, and `Model` as well unless the second value is a string: then the two texts use one
    name for different things, and the reference must live in a namespace of its own. Raises CandidateError when the
    candidate's text is not Python.
    """
    reference_tree, candidate_tree = ast.parse(reference), _parse(candidate)
    body = rename(candidate, "ModelNew", OPTIMISED).strip("\n") + "\n"
    if contains(candidate_tree, reference_tree):
        return body, None
    if collide(candidate_tree, reference_tree):
        return body, reference
    futures = sorted({*_futures(reference_tree), *_futures(candidate_tree)})
    head = f"from __future__ import {', '.join(futures)}\n\n" if futures else ""
    original = _drop_futures(reference, reference_tree).strip("\n")
    return f"{head}{original}\n\n\n{_drop_futures(body, ast.parse(body)).strip(chr(10))}\n", None


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
    kept = [text for number, text in enumerate(source.splitlines(keepends=True), 1) if number not in dropped]
    return "".join(kept)
