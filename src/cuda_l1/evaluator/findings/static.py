"""Findings from the syntax tree of a candidate. Notes for a reader: text proves nothing, and evidence decides.

Only `silent-fallback`, `dead-kernel` and `unread` are `suspect`: a candidate that runs the reference's code when its
own kernel fails, that never runs its kernel at all, or that has more code than is read, must be seen as what it is.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator

from cuda_l1.evaluator.findings.fallbacks import fallbacks_by_name
from cuda_l1.evaluator.findings.kernels import is_torch_call, kernel_findings, may_hide_a_kernel
from cuda_l1.tasks.own_modules import LOADER, whole_tree
from cuda_l1.types import Finding

MOST_CODE = 1 << 20
"""Characters outside of strings: the tree of twice as many takes 1.2 GB."""
_ONE_LINE_STRING = re.compile(r"\"[^\"\\\n]*\"|'[^'\\\n]*'")
_MODULES = {
    "threading": "thread",
    "multiprocessing": "thread",
    "concurrent": "thread",
    "gc": "gc",
    "atexit": "deferred-work",
    "weakref": "deferred-work",
    "socket": "network",
    "urllib": "network",
    "requests": "network",
    "time": "clock",
    "inspect": "frame",
    "builtins": "monkey-patch",
}
_CALLS = {
    "_getframe": "frame",
    "get_objects": "gc",
    "get_referrers": "gc",
    "setattr": "monkey-patch",
    "perf_counter": "clock",
    "Stream": "stream",
    "ExternalStream": "stream",
    "open": "file-access",
    "_exit": "exit",
    "kill": "signal",
}
_FLAGS = {"allow_tf32", "benchmark", "deterministic", "allow_fp16_reduced_precision_reduction"}
_SETTERS = {"set_float32_matmul_precision", "set_num_threads", "use_deterministic_algorithms"}
_PATCHED_ROOTS = {"torch", "time", "builtins", "sys", "os", "gc"}


def static_findings(source: str, reference: str = "") -> list[Finding]:
    """What the text uses that a reader of the verdict should know of; [] when it does not parse.

    Statements that the task's text `reference` has as well make nothing `suspect`: what a reference does where an
    optional library is missing is no kernel that failed. More code than can be read in a second or two is `suspect`
    by itself.
    """
    code = source if LOADER in source else _ONE_LINE_STRING.sub("", source)  # what a string holds may be a module
    if len(code) > MOST_CODE:
        text = f"more than {MOST_CODE >> 20} MiB of code: it was not read for what it uses"
        return [Finding(check="unread", severity="suspect", evidence=text, static=True)]
    try:
        tree = whole_tree(source.encode())  # bytes: a coding line counts as it does when the file is imported
        found = list(_walk(tree))
        if any(severity == "suspect" for _, severity, _, _ in found):
            found = [*_suspects(tree, _own_part(tree, reference)), *(one for one in found if one[1] == "note")]
        seen: dict[str, Finding] = {}
        for check, severity, line, text in found:
            seen.setdefault(
                check, Finding(check=check, severity=severity, evidence=f"line {line}: {text}", static=True)
            )
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return list(seen.values())


def _own_part(tree: ast.Module, reference: str) -> ast.Module:
    """The statements that are not the reference's."""
    theirs: set[str] = set()
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        theirs = {ast.dump(node) for node in whole_tree(reference).body}
    return ast.Module([node for node in tree.body if ast.dump(node) not in theirs], [])


def _suspects(tree: ast.AST, own: ast.AST) -> Iterator[tuple[str, str, int, str]]:
    """What makes `own`, a part of `tree`, suspect."""
    yield from kernel_findings(tree, own)
    for node in ast.walk(own):
        if isinstance(node, ast.Try):
            yield from _fallback(node)
    yield from fallbacks_by_name(own)


def _walk(tree: ast.AST) -> Iterator[tuple[str, str, int, str]]:
    yield from _suspects(tree, tree)
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield from _module(alias.name, node.lineno)
            case ast.ImportFrom(module=str(module)):
                yield from _module(module, node.lineno)
            case ast.Call():
                yield from _call(node)
            case ast.Assign(targets=targets):
                for target in targets:
                    yield from _assignment(target)
            case ast.FunctionDef(name="__del__"):
                yield "deferred-work", "note", node.lineno, "__del__ runs after the timed window"


def _module(name: str, line: int) -> Iterator[tuple[str, str, int, str]]:
    kind = _MODULES.get(name.split(".")[0])
    if kind:
        yield kind, "note", line, f"imports {name}"


def _call(node: ast.Call) -> Iterator[tuple[str, str, int, str]]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in _CALLS:
        yield _CALLS[name], "note", node.lineno, f"calls {name}"
    if name in _SETTERS:
        yield "backend-flag", "note", node.lineno, f"calls {name}"


def _assignment(target: ast.expr) -> Iterator[tuple[str, str, int, str]]:
    if not isinstance(target, ast.Attribute):
        return
    root: ast.expr = target
    while isinstance(root, ast.Attribute):
        root = root.value
    if target.attr in _FLAGS:
        yield "backend-flag", "note", target.lineno, f"sets {ast.unparse(target)}"
    elif isinstance(root, ast.Name) and root.id in _PATCHED_ROOTS:
        yield "monkey-patch", "note", target.lineno, f"assigns {ast.unparse(target)}"


_FALLBACKS = ("super().forward", "Model.forward", "reference", "fallback")


def _fallback(node: ast.Try) -> Iterator[tuple[str, str, int, str]]:
    """A handler that computes the result in another way, or remembers that it must, hides a kernel that failed."""
    for handler in node.handlers:
        for inner in ast.walk(handler) if may_hide_a_kernel(node, handler) else ():
            if isinstance(inner, ast.Return | ast.Assign) and (_computes(inner) or _remembers(inner)):
                text = ast.unparse(inner).splitlines()[0][:120]
                yield "silent-fallback", "suspect", handler.lineno, f"an exception is answered by `{text}`"


def _computes(statement: ast.Return | ast.Assign) -> bool:
    value = statement.value
    if value is None:
        return False
    text = ast.unparse(value)
    if any(name in text for name in _FALLBACKS):
        return True
    calls = [n for n in ast.walk(value) if isinstance(n, ast.Call)]
    return isinstance(statement, ast.Return) and any(is_torch_call(c) for c in calls)


def _remembers(statement: ast.Return | ast.Assign) -> bool:
    """`self.use_kernel = False`"""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Constant):
        return False
    return statement.value.value in (True, False) and any(isinstance(t, ast.Attribute) for t in statement.targets)
