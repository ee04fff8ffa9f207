"""Exceptions that are answered by torch under a name: `try: y = kernel(x)`, `except: y = torch.relu(x)`, `return y`."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from cuda_l1.evaluator.findings.kernels import is_torch_call, may_hide_a_kernel

_COMPUTE_NOTHING = {"empty", "empty_like", "empty_strided", "zeros", "zeros_like", "device", "is_tensor"}
"""Calls of torch's that make room for an answer, or ask about a tensor."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Set = tuple[set[str], ast.expr]
"""(names, `self.y` among them; what they are set to)"""


def fallbacks_by_name(own: ast.AST) -> Iterator[tuple[str, str, int, str]]:
    """`silent-fallback`, suspect: a handler sets a name, or an attribute, to what torch computes from the arguments of
    its function, and what is returned depends on it."""
    attributes = {name for name in _returned(own) if "." in name}  # another method may return what this one has set
    for function in _outermost(own):
        found = [(line, one) for line, one in _in_handlers(function) if _computes(one[1])]
        if not found:
            continue
        users, makers = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
        for names, value in _sets([function]):
            for read in _read(value):
                users[read] |= names
            for name in names:
                makers[name] |= _read(value)
        arguments = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)} - {"self"}
        given, returned = _reached(arguments, users), _reached(_returned(function) | attributes, makers)
        for line, (names, value) in found:
            if names & returned and _read(value) & given:
                text = f"{min(names)} = {ast.unparse(value)}".splitlines()[0][:120]
                yield "silent-fallback", "suspect", line, f"an exception is answered by `{text}`"


def _outermost(tree: ast.AST) -> Iterator[_Function]:
    """Functions that stand in no other; methods among them."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, _Function):
            yield node
        else:
            waiting += ast.iter_child_nodes(node)


def _in_handlers(function: _Function) -> Iterator[tuple[int, _Set]]:
    """(line of the handler, what it sets) of each that may be there for a kernel that fails."""
    for node in (inner for inner in ast.walk(function) if isinstance(inner, ast.Try)):
        for handler in node.handlers:
            if may_hide_a_kernel(node, handler):
                for found in _sets(handler.body):
                    yield handler.lineno, found


def _sets(body: Iterable[ast.AST]) -> Iterator[_Set]:
    for node in (inner for statement in body for inner in ast.walk(statement)):
        match node:
            case ast.Assign(targets=targets, value=value):
                yield {name for target in targets for name in _written(target)}, value
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield _written(target), value
            case ast.AugAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
                yield _written(target), value


def _written(target: ast.expr) -> set[str]:
    """`y`, `self.y`, each of `a, b`, and `outputs` of `outputs[0]`."""
    match target:
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return {name for element in elements for name in _written(element)}
        case ast.Attribute(value=ast.Name(id=root), attr=name):
            return {f"{root}.{name}"}
        case ast.Starred(value=value) | ast.Subscript(value=value) | ast.Attribute(value=value):
            return _written(value)
        case ast.Name(id=name):
            return {name}
    return set()


def _read(value: ast.expr) -> set[str]:
    names = set()
    for node in ast.walk(value):
        match node:
            case ast.Name(id=name):
                names.add(name)
            case ast.Attribute(value=ast.Name(id=root), attr=name):
                names.add(f"{root}.{name}")
    return names


def _reached(names: set[str], links: Mapping[str, set[str]]) -> set[str]:
    """`names`, and all that links lead to from them."""
    reached, waiting = set(names), list(names)
    while waiting:
        new = links.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    return reached


def _returned(tree: ast.AST) -> set[str]:
    """Names and attributes that returns read."""
    values = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return) and node.value is not None]
    return {name for value in values for name in _read(value)}


def _computes(value: ast.expr) -> bool:
    calls = [node for node in ast.walk(value) if isinstance(node, ast.Call) and is_torch_call(node)]
    return any(ast.unparse(call.func).rpartition(".")[2] not in _COMPUTE_NOTHING for call in calls)
