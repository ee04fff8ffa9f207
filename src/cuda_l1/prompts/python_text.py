"""Whether a text is one complete Python file that defines `ModelNew`; nothing of it is executed."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from functools import lru_cache

LONGEST = 1 << 20
"""Characters; the syntax tree of a longer text would fill the memory."""
_NAME = "<reply>"
# What a model's text makes Python's parser warn of is nobody's concern. A filter for good, by the text's file name:
# `catch_warnings` is not safe where several threads parse.
warnings.filterwarnings("ignore", module=_NAME)


def syntax_problem(text: str) -> str | None:
    """Why a text is no Python, with its line number where there is one; None where it is."""
    found = _parsed(text)
    return found if isinstance(found, str) else None


def tree_of(text: str) -> ast.Module | None:
    """The syntax tree of a text, not to be changed; None where it is no Python."""
    found = _parsed(text)
    return None if isinstance(found, str) else found


def defines_model_new(text: str) -> bool:
    """Whether a text is Python whose own level defines a class, or another name, `ModelNew`."""
    tree = tree_of(text)
    return tree is not None and "ModelNew" in set(_defined(tree.body))


@lru_cache(maxsize=16)
def _parsed(text: str) -> ast.Module | str:
    if len(text) > LONGEST:
        return f"it has {len(text)} characters, more than {LONGEST}"
    try:
        # Bytes, so that a coding line counts as it does when the file is imported.
        return ast.parse(text.encode(), filename=_NAME)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"it cannot be parsed ({type(error).__name__}: {error})"


def _defined(body: list[ast.stmt]) -> Iterator[str]:
    """Names that statements define; without recursion, since each `elif` lies one level deeper."""
    left: list[ast.stmt] = list(body)
    while left:
        node = left.pop()
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.If | ast.Try | ast.With):
            for part in ("body", "orelse", "finalbody"):
                left.extend(getattr(node, part, []))
