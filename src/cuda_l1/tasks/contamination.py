"""Whether a task to train on is one that others evaluate on: the same text, or the same computation in other words."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from cuda_l1.tasks.graph_hash import graph_hash
from cuda_l1.types import Task, digest


class EvaluationTasks:
    """Tasks that nothing may be trained on, by normalised text and by graph."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._graphs: dict[str, str] = {}

    def add(self, tasks: Iterable[Task]) -> None:
        """Tasks whose texts are here."""
        for task in tasks:
            self._texts.setdefault(digest(normal_text(task.source)), f"{task.suite}/{task.name}")
            self._graphs.setdefault(graph_hash(task), f"{task.suite}/{task.name}")

    def add_graphs(self, suite: str, hashes: Iterable[str]) -> None:
        """Tasks of which only the graph hashes are known."""
        for value in hashes:
            self._graphs.setdefault(value, suite)

    def found(self, task: Task) -> str | None:
        """The evaluation task that this is one with, in words; None where it is none of them."""
        if same := self._texts.get(digest(normal_text(task.source))):
            return f"{same}: the same text"
        if same := self._graphs.get(graph_hash(task)):
            return f"{same}: the same graph"
        return None

    def __len__(self) -> int:
        """How many different graphs there are."""
        return len(self._graphs)


def normal_text(source: str) -> str:
    """A text without what does not change its meaning: comments, formatting, documentation. Python or not."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return " ".join(source.split())
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            said = [n for n in node.body if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))]
            node.body = said or [ast.Pass()]
    return ast.unparse(tree)
