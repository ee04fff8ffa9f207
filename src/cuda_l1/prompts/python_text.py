"""Whether a text is one complete Python file that defines `ModelNew`; nothing of it is executed."""

from __future__ import annotations

import ast
import builtins
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

LONGEST = 1 << 20
"""Characters; the syntax tree of a longer text would fill the memory."""
_NAME = "<reply>"
# What a model's text makes Python's parser warn of is nobody's concern. A filter for good, by the text's file name:
# `catch_warnings` is not safe where several threads parse.
warnings.filterwarnings("ignore", module=_NAME)


def syntax_problem(text: str) -> str | None:
    """Why a text is no Python, with its line number where there is one; None where it is."""
    found = _parsed(_ended(text))
    return found if isinstance(found, str) else None


def tree_of(text: str) -> ast.Module | None:
    """The syntax tree of a text, not to be changed; None where it is no Python."""
    found = _parsed(_ended(text))
    return None if isinstance(found, str) else found


def literal(text: str) -> Any:
    """The value of a text that is one literal of Python's, such as a dict; None where it is none."""
    tree = tree_of(text)
    statement = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    try:
        return ast.literal_eval(statement.value) if isinstance(statement, ast.Expr) else None
    except (ValueError, TypeError, RecursionError, MemoryError):  # a name, or a list as a key
        return None


def defines_model_new(text: str) -> bool:
    """Whether a text is Python whose own level defines a class, or another name, `ModelNew`, and does not take it back
    below."""
    tree = tree_of(text)
    if tree is None:
        return False
    found = False
    for statement in tree.body:
        found = "ModelNew" in set(_defined([statement])) or (found and "ModelNew" not in _taken_back(statement))
    return found


def formless(text: str) -> str:
    """What is equal for texts that are the same Python but for comments and formatting."""
    tree = tree_of(text)
    try:
        return ast.dump(tree) if tree is not None else text
    except RecursionError:
        return text


def bound_names(text: str) -> frozenset[str]:
    """Names that a text binds anywhere; none where it is no Python."""
    tree = tree_of(text)
    return frozenset(_bound(tree)) if tree is not None else frozenset()


def needs_no_other(text: str, given: frozenset[str] = frozenset()) -> bool:
    """Whether the classes of a text's own level derive from what the text, Python itself or `given` has a name for. A
    passage of a file that is shown without its imports does not."""
    tree = tree_of(text)
    if tree is None:
        return False
    needed = {
        name.id
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        for part in (*node.bases, *node.keywords, *node.decorator_list)
        for name in ast.walk(part)
        if isinstance(name, ast.Name)
    }
    known = {*_bound(tree), *given, *dir(builtins)}
    return "*" in known or needed <= known


def _bound(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _ended(text: str) -> str:
    """With one line end: what a fence holds and the file made of it are parsed once."""
    return text.rstrip("\n") + "\n"


@lru_cache(maxsize=16)
def _parsed(text: str) -> ast.Module | str:
    if len(text) > LONGEST:
        return f"it has {len(text)} characters, more than {LONGEST}"
    try:
        # Bytes, so that a coding line counts as it does when the file is imported.
        tree = ast.parse(text.encode(), filename=_NAME)
        compile(text.encode(), _NAME, "exec", dont_inherit=True)  # a `return` outside of a function is no fault before
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError, SystemError) as error:
        return f"it cannot be parsed ({type(error).__name__}: {error})"
    if (line := _here_document(tree)) is not None:
        return f"line {line}: it is a shell script that writes a file, and not the file"
    return tree


def _here_document(tree: ast.Module) -> int | None:
    """The line where a shell script's text for a file begins: to Python `cat > model.py <<'EOF'` compares and shifts,
    and the line `EOF` at its end is a name."""
    begun: dict[str, int] = {}
    for node in tree.body:
        if not isinstance(node, ast.Expr):
            continue
        if isinstance(node.value, ast.Name) and node.value.id in begun:
            return begun[node.value.id]
        for part in ast.walk(node.value):
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.LShift) and (end := _end_mark(part.right)):
                begun[end] = node.lineno
    return None


def _end_mark(node: ast.expr) -> str | None:
    """The word behind `<<`, plain, quoted, or behind a dash."""
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    return node.id if isinstance(node, ast.Name) else None


def _defined(body: list[ast.stmt]) -> Iterator[str]:
    """Names that statements give to what may be a class; without recursion, since each `elif` lies one level deeper."""
    left: list[ast.stmt] = list(body)
    while left:
        node = left.pop()
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign) and not isinstance(node.value, ast.Constant):
            yield from (name.id for target in node.targets for name in _names(target))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if node.value is not None and not isinstance(node.value, ast.Constant):
                yield node.target.id
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.Match):
            for part in (node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                left.extend(inner for name in ("body", "orelse", "finalbody") for inner in getattr(part, name, ()))


def _names(target: ast.expr) -> list[ast.Name]:
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    return [part for part in parts if isinstance(part, ast.Name)]


def _taken_back(node: ast.stmt) -> set[str]:
    """Names that a statement deletes, or gives to a constant."""
    if isinstance(node, ast.Delete) or (isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Constant):
        targets = [node.target]
    else:
        return set()
    return {target.id for target in targets if isinstance(target, ast.Name)}
