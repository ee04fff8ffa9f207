"""One hash for all texts of one computation: what tells whether a task is another one in other words.

It is read from the text, which is never executed, so that it may be asked of foreign files. What it looks at is the
graph of operators from the outputs of `Model.forward` back to its inputs and weights.

One hash have texts that differ in names, formatting, comments, the order of independent statements, dead code, the
order of the operands of +, * and what else commutes (`dataflow.graph.COMMUTATIVE`), the number of helper functions and
classes, the spelling of an operator (`F.relu(x)`, `torch.relu(x)`, `x.relu_()`, `nn.ReLU()(x)`) and of its settings (by
position or name, the default or nothing), and in sizes: of inputs, channels, features, and numbers that follow from
them (`1 / math.sqrt(dim)`). Names and orders never count in a text that is followed.
Different are operators, their order and connections, which inputs and weights are shared, and all settings that are no
sizes: kernel, stride, dimension, epsilon, scalars. But some graphs with symmetry upon symmetry share a hash: to tell
every two graphs apart may take for ever (`dataflow.graph.canonical` says what is done).

Sizes are left out because a model that was trained on a task has seen it at every size. Dimensions count as written
(`dim=-1` and `dim=1` differ, since ranks are not known), and so does a size that is a number in a formula
(`x / heads`). Algebra is not seen: `x / 2` and `x * 0.5`, a softmax and its parts are different computations here.

A text with control flow that depends on data, or another construct that is not followed, is hashed as its syntax
tree without names and sizes; such a hash begins with `syntax-`, and it tells apart texts that compute the same.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from cuda_l1.tasks.dataflow import Unreadable, canonical, read_graph
from cuda_l1.types import Task, digest

_VERSION = "2"
"""Raised whenever a text gets another hash than before; hashes of two versions never agree."""


def graph_hash(task: Task | str) -> str:
    """The hash of a task, or of a task's text: 64 hexadecimal digits, or `syntax-` and 64 of them."""
    return _hash(task if isinstance(task, str) else task.source)


@lru_cache(maxsize=4096)
def _hash(source: str) -> str:
    try:
        return digest(_VERSION, canonical(read_graph(source)))
    except Unreadable:
        return "syntax-" + digest(_VERSION, _syntax(source))


def _syntax(source: str) -> str:
    """The syntax tree of what is not followed: names by the order in which they first occur, no text for people."""
    try:
        return _dumped(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return " ".join(source.split())


def _dumped(tree: ast.Module) -> str:
    kept = [node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not _draws(node)]
    renamer = _Renamer({child.name for child in ast.walk(tree) if isinstance(child, (ast.ClassDef, ast.FunctionDef))})
    return "\n".join(ast.dump(renamer.visit(node)) for node in kept)


def _draws(node: ast.ClassDef | ast.FunctionDef) -> bool:
    return node.name in ("get_inputs", "get_init_inputs")


class _Renamer(ast.NodeTransformer):
    """Names of variables and of the file's own functions become numbers; annotations and documentation go."""

    def __init__(self, own: set[str]) -> None:
        self._own = own
        self._numbers: dict[str, str] = {}

    def _new(self, name: str) -> str:
        return self._numbers.setdefault(name, f"n{len(self._numbers)}")

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._new(node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(self._new(node.arg))

    def visit_Attribute(self, node: ast.Attribute) -> ast.Attribute:
        of_self = isinstance(node.value, ast.Name) and node.value.id == "self"
        return ast.Attribute(self.visit(node.value), self._new(node.attr) if of_self else node.attr, node.ctx)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node = ast.FunctionDef(self._new(node.name), node.args, _spoken(node.body), node.decorator_list)
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self.generic_visit(ast.ClassDef(self._new(node.name), node.bases, node.keywords, _spoken(node.body), []))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        value = node.value or ast.Constant(None)
        return self.generic_visit(ast.Assign([node.target], value))


def _spoken(body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements without documentation strings."""
    return [node for node in body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
