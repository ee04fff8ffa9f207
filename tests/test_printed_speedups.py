"""No printed speed-up reads better than it is: whatever formats one rounds it towards 1."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [path for folder in ("src", "benchmarks") for path in sorted((ROOT / folder).rglob("*.py"))]
OLD_STYLE = re.compile(r"(%\.\d+[efg]|\{[^{}]*:\.\d+[efg]\})x\b")
"""Of `%` and of `str.format`."""


def nearest(text: str) -> list[str]:
    """Formats of a number of digits with an x behind them, as in `1.52x`, whose value is not `towards_one(...)`."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.JoinedStr):
            for part, following in itertools.pairwise(node.values):
                if (
                    isinstance(part, ast.FormattedValue)
                    and part.format_spec is not None
                    and re.search(r"\.\d+[efg]", ast.unparse(part.format_spec))
                    and isinstance(following, ast.Constant)
                    and re.match(r"x\b", str(following.value))
                    and not ast.unparse(part.value).startswith("towards_one(")
                ):
                    found.append(ast.unparse(node))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and OLD_STYLE.search(node.value):
            found.append(node.value)
    return found


def test_speedups_are_rounded_towards_one() -> None:
    assert not {str(path.relative_to(ROOT)): found for path in FILES if (found := nearest(path.read_text()))}


@pytest.mark.parametrize("text", ["f'{a:.2f}x'", "f'best {a / b:.3g}x, {c}'", "'%.2fx' % a", "'{:.2f}x'.format(a)"])
def test_what_rounds_to_the_nearest_is_found(text: str) -> None:
    assert nearest(text)


@pytest.mark.parametrize(
    "text", ["f'{towards_one(a):.2f}x'", "f'{times(a)}'", "f'{tick:g}x'", "f'{height}x{width}'", "f'{a:.2f} xs'"]
)
def test_nothing_else_is(text: str) -> None:
    assert not nearest(text)
