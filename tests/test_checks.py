"""`CHECKS` names what findings are made with: all of it, and nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from cuda_l1.evaluator.findings import static
from cuda_l1.types import CHECKS

ROOT = Path(__file__).parents[1]
SEVERITIES = {"note", "suspect", "reject"}
PASSED_ON = {"check", "kind", "_CALLS[name]"}
"""What was named elsewhere."""


def made_in(path: Path) -> Iterator[str]:
    """Names of checks: of `Finding(check=...)`, and what stands before a severity (`yield "clock", "note", ...`)."""
    tree = ast.parse(path.read_text())
    names = {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        told: list[ast.expr] = []
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Finding":
            told = [keyword.value for keyword in node.keywords if keyword.arg == "check"]
        elif isinstance(node, ast.Call | ast.Tuple):
            parts = node.args if isinstance(node, ast.Call) else node.elts
            is_severity = [isinstance(part, ast.Constant) and part.value in SEVERITIES for part in parts]
            told = parts[:1] if is_severity[:2] == [False, True] else []
        for value in told:
            if isinstance(value, ast.Constant):
                yield str(value.value)
            elif isinstance(value, ast.Name) and value.id in names:
                yield str(names[value.id])
            else:
                assert ast.unparse(value) in PASSED_ON, f"{path}:{value.lineno}"


def test_every_check_is_named_and_every_name_is_made() -> None:
    made = {name for path in (ROOT / "src").rglob("*.py") for name in made_in(path)}
    made |= {*static._MODULES.values(), *static._CALLS.values()}
    assert made == set(CHECKS) and len(CHECKS) == len(set(CHECKS))


def test_the_page_has_them_all() -> None:
    page = (ROOT / "docs" / "evaluation-protocol.md").read_text()
    section = page.partition("\n## Findings\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE)
    assert {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)} == set(CHECKS)
