"""Kernels that a candidate holds and does not use, read off its text: never called, or missing without a word."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeGuard

_BUILDERS = {"load_inline", "CDLL", "LoadLibrary", "RawKernel", "RawModule", "_compile_kernel"}
_ASK_FOR_A_FILE = {"exists", "isfile", "is_file"}
_NO_KERNELS = (vars(builtins).keys() | sys.stdlib_module_names) - {
    *("ctypes", "subprocess", "importlib", "super", "exec", "eval", "__import__"),
}
"""Of calls that begin with these, none builds or runs a kernel."""
_WRITTEN_WITH = {"cupy", "cutlass", "numba", "pycuda", "tilelang", "triton"}
"""Packages without which a text's own kernel is missing."""
_TOOLS = _WRITTEN_WITH | {"cc", "c++", "clang", "clang++", "g++", "gcc", "hipcc", "ninja", "nvcc"}
_ASK_FOR_A_TOOL = {"find_spec", "which"}
_ASK_FOR_COMPILERS = {"has_triton", "has_triton_package", "is_ninja_available"}
_LOOKUPS = {"KeyError", "IndexError"}
"""What no kernel raises."""
_Found = tuple[str, str, int, str]
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def kernel_findings(tree: ast.AST, own: ast.AST) -> Iterator[_Found]:
    """`dead-kernel` and `silent-fallback`, both suspect: the result is PyTorch's, not the kernel's. `own` is the part
    of the tree that is no text of the reference's."""
    yield from _dead_kernels(tree, own)
    yield from _missing_kernels(tree, own)


def _dead_kernels(tree: ast.AST, written: ast.AST) -> Iterator[_Found]:
    """A text in which kernels are built or written and no function uses the name of any of them."""
    lines = _kernels(written, _builds)
    kernel = next(iter(_kernels(written, _builds_its_own).items()), None)
    # In order: `kernel = library.function` follows `library = CDLL(...)`, and `start = Launcher(kernel)` the kernel.
    for node in ast.walk(written):
        if isinstance(node, ast.Assign) and (_builds(node.value) or lines.keys() & _loaded(node.value)):
            lines.update(dict.fromkeys([*_targets(node), *_containers(node)], node.lineno))
    own = {id(inner) for node in ast.walk(written) if _is_jitted(node) for inner in ast.walk(node)}
    used: set[str] = set()
    for node in ast.walk(tree):
        # A kernel that is handed to a function, `register("relu", library.relu)`, may be called by any other name.
        if isinstance(node, _Function | ast.Expr) and id(node) not in own:
            used |= _loaded(node)
    if kernel and not lines.keys() & used and not any(_is_registered_operator(node) for node in ast.walk(tree)):
        name, line = kernel
        yield "dead-kernel", "suspect", line, f"the kernel `{name}` is used by no function"


def _kernels(tree: ast.AST, builds: Callable[[ast.expr], bool]) -> dict[str, int]:
    """Names of what is written or built as a kernel -> line."""
    lines = {node.name: node.lineno for node in ast.walk(tree) if _is_jitted(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and builds(node.value):
            lines.update(dict.fromkeys(_targets(node), node.lineno))
    return lines


def _containers(node: ast.Assign) -> Iterator[str]:
    """`KERNELS` of `KERNELS["relu"] = kernel`."""
    for target in node.targets:
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            yield target.value.id


def _is_registered_operator(node: ast.AST) -> bool:
    """`torch.ops.mine`, which code in a library may define under any name."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr not in ("aten", "prims", "load_library")
        and isinstance(node.value, ast.Attribute)
        and ast.unparse(node.value) == "torch.ops"
    )


def _missing_kernels(tree: ast.AST, own: ast.AST) -> Iterator[_Found]:
    """A name that is left empty when an exception is swallowed, a kernel whose exceptions are, or a library that may
    not be there; and a function that answers by torch when it is so."""
    kernels = _kernels(own, _builds)
    libraries = _libraries(tree)
    guarded = {name for node in ast.walk(tree) for name in (*_left_empty(node), *_told_by_asking(node, libraries))}
    for function in ast.walk(own):
        if isinstance(function, ast.If) and _asks(function.test, libraries):
            definitions = [n for n in _below([*function.body, *function.orelse]) if isinstance(n, ast.FunctionDef)]
            if any(_answers(node) for definition in definitions for node in ast.walk(definition)):
                text = f"answers without a kernel unless `{ast.unparse(function.test)[:80]}`"
                yield "silent-fallback", "suspect", function.lineno, text
        if not isinstance(function, ast.FunctionDef):
            continue
        answers = [node for node in ast.walk(function) if _answers(node)]
        for node in ast.walk(function) if answers else ():
            if isinstance(node, ast.If | ast.IfExp) and _asks(node.test, libraries):
                text = f"where not `{ast.unparse(node.test)[:80]}`, `{function.name}` answers without a kernel"
                yield "silent-fallback", "suspect", node.lineno, text
            elif isinstance(node, ast.If | ast.IfExp) and (names := guarded & set(_looked_for(node.test))):
                text = f"`{min(names)}` may be missing, and `{function.name}` then answers without it"
                yield "silent-fallback", "suspect", node.lineno, text
            elif isinstance(node, ast.stmt) and any(_is_answer_of(kernels, n) for n in _below(_left_in_silence(node))):
                within = {id(inner) for inner in ast.walk(node)}
                if any(id(answer) not in within for answer in answers):
                    text = f"where the kernel fails or is missing, `{function.name}` answers without it"
                    yield "silent-fallback", "suspect", node.lineno, text


def _libraries(tree: ast.AST) -> set[str]:
    """Names of what is built, loaded, or imported from elsewhere than the standard library and PyTorch."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and (
            _builds(node.value)
            or any(_name(n) in ("import_module", "__import__") for n in ast.walk(node.value) if isinstance(n, ast.Call))
        ):
            found.update(_targets(node))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                if (module or alias.name).split(".")[0] not in sys.stdlib_module_names | {"torch", "numpy"}:
                    found.add((alias.asname or alias.name).split(".")[0])
    return found


def _told_by_asking(node: ast.AST, libraries: Collection[str]) -> Iterator[str]:
    """Names that hold what was found when a tool or a kernel was asked for."""
    if isinstance(node, ast.Assign) and _asks(node.value, libraries):
        yield from _targets(node)
    elif isinstance(node, ast.NamedExpr) and _asks(node.value, libraries):
        yield node.target.id


def _asks(node: ast.expr, libraries: Collection[str]) -> bool:
    """Whether it asks for a compiler or a package that kernels are written with, or whether a library has a kernel."""
    return any(isinstance(n, ast.Call) and _asks_for_a_kernel(n, libraries) for n in ast.walk(node))


def _asks_for_a_kernel(call: ast.Call, libraries: Collection[str]) -> bool:
    name = _name(call)
    if name in _ASK_FOR_A_TOOL and call.args and isinstance(call.args[0], ast.Constant):
        return str(call.args[0].value).split(".")[0] in _TOOLS
    if name in ("getattr", "hasattr") and len(call.args) == (3 if name == "getattr" else 2):
        asked = ast.unparse(call.args[0])
        is_own = asked.startswith("torch.ops.") and asked.split(".")[2] not in ("aten", "prims")
        return is_own or _root(call.args[0]) in libraries
    return name in _ASK_FOR_COMPILERS


def _is_answer_of(kernels: Collection[str], node: ast.AST) -> bool:
    """A return of what a kernel gave."""
    if not isinstance(node, ast.Return) or node.value is None:
        return False
    return _builds(node.value) or not _loaded(node.value).isdisjoint(kernels)


def _left_in_silence(node: ast.stmt) -> Sequence[ast.stmt]:
    """The body of a statement after which it goes on when a kernel fails in it, or where its file is missing."""
    match node:
        case ast.With(items=items, body=body) if any(_name(item.context_expr) == "suppress" for item in items):
            return body
        case ast.Try(body=body, handlers=handlers) if any(_goes_on(h) and may_hide_a_kernel(node, h) for h in handlers):
            return body
        case ast.If(test=ast.Call() as test, body=body, orelse=[]) if _name(test) in _ASK_FOR_A_FILE:
            return body
    return ()


def _goes_on(handler: ast.ExceptHandler) -> bool:
    return not any(isinstance(inner, ast.Raise | ast.Return) for inner in ast.walk(handler))


def _below(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    for statement in body:
        yield from ast.walk(statement)


def may_hide_a_kernel(node: ast.Try, handler: ast.ExceptHandler) -> bool:
    """Whether a handler may be there for a kernel that fails: not where a key, a processor or a package that holds
    kernels of others' is looked for."""
    if handler.type is not None and {n.id for n in ast.walk(handler.type) if isinstance(n, ast.Name)} <= _LOOKUPS:
        return False
    body = list(_below(node.body))
    imported = {alias.name for inner in body if isinstance(inner, ast.Import) for alias in inner.names}
    imported |= {inner.module or "" for inner in body if isinstance(inner, ast.ImportFrom)}
    if _WRITTEN_WITH & {name.split(".")[0] for name in imported}:
        return True
    return any(isinstance(inner, ast.Call) and _root(inner.func) not in _NO_KERNELS for inner in body)


def is_torch_call(call: ast.Call) -> bool:
    """Whether torch, or the module itself, is called by name."""
    return ast.unparse(call.func).startswith(("torch.", "F.", "self.", "super()"))


def _root(node: ast.expr) -> str:
    """`os` of `os.sched_getaffinity`; "" for what begins with no name."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _looked_for(test: ast.expr) -> Iterator[str]:
    """Names that a condition asks whether they are there; comparing a value that was computed is another matter."""
    match test:
        case ast.BoolOp(values=values):
            for value in values:
                yield from _looked_for(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _looked_for(operand)
        case ast.Compare(left=left, comparators=[ast.Constant(value=None)]):
            yield from _looked_for(left)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            yield name


def _left_empty(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.With) and any(_name(item.context_expr) == "suppress" for item in node.items):
        yield from _assigned(node.body)
    elif isinstance(node, ast.Try):
        for handler in node.handlers:
            raises = any(isinstance(inner, ast.Raise) for inner in ast.walk(handler))
            if not raises and may_hide_a_kernel(node, handler):
                yield from _assigned([*node.body, *handler.body])


def _assigned(body: list[ast.stmt]) -> Iterator[str]:
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign):
                yield from _targets(node)


def _answers(node: ast.AST) -> bool:
    """A return of something that torch computes."""
    if not isinstance(node, ast.Return) or node.value is None:
        return False
    texts = [ast.unparse(call.func) for call in ast.walk(node.value) if isinstance(call, ast.Call)]
    return any(text.startswith(("torch.", "F.", "super()")) for text in texts)


def _targets(node: ast.Assign) -> Iterator[str]:
    for target in node.targets:
        if isinstance(target, ast.Name):
            yield target.id
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
            yield target.attr


def _is_jitted(node: ast.AST) -> TypeGuard[ast.FunctionDef]:
    return isinstance(node, ast.FunctionDef) and any(
        "jit" in ast.unparse(decorator).split("(")[0].split(".") for decorator in node.decorator_list
    )


def _builds(value: ast.expr) -> bool:
    return any(isinstance(node, ast.Call) and _name(node) in _BUILDERS for node in ast.walk(value))


def _builds_its_own(value: ast.expr) -> bool:
    """The same, without `CDLL(None)`: this process, which holds a kernel only where one is loaded besides."""
    return any(
        isinstance(node, ast.Call) and _name(node) in _BUILDERS and not _is_of_nothing(node) for node in ast.walk(value)
    )


def _is_of_nothing(call: ast.Call) -> bool:
    names = [*call.args[:1], *(each.value for each in call.keywords if each.arg == "name")]
    return bool(names) and isinstance(names[0], ast.Constant) and names[0].value is None


def _name(node: ast.expr) -> str:
    """What is called, by its last name."""
    function = node.func if isinstance(node, ast.Call) else node
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _loaded(node: ast.AST) -> set[str]:
    """Names, and attributes by their last name, that are read below a node."""
    names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)}
    return names | {inner.attr for inner in ast.walk(node) if isinstance(inner, ast.Attribute)}
