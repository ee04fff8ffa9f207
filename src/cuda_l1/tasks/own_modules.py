"""A file's own modules: what it imports from beside itself. Their text goes into that of the task, or of the candidate,
which is whole then.

The sandbox reads none of the user's folders, and a digest that left them out would call a changed text the same.
"""

from __future__ import annotations

import ast
import contextlib
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cuda_l1.errors import TaskError

MOST_BYTES = 1_000_000
"""Of all own modules together: a file that imports more imports a whole project, whose text no task should hold."""

LOADER = "_OwnModules"
"""Name of the class in the text that finds them; `sys.meta_path` holds one for each text that was executed."""

_TEXT = '''import importlib.abc
import importlib.util
import sys


class {loader}(importlib.abc.MetaPathFinder, importlib.abc.ExecutionLoader):
    """The modules that lay beside this file."""

    packages = {packages!r}
    texts = {{
{texts}
    }}

    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name in self.texts else None

    def is_package(self, name):
        return name in self.packages

    def get_filename(self, name):
        return name.replace(".", "/") + ("/__init__.py" if name in self.packages else ".py")

    def get_source(self, name):
        return self.texts[name]


sys.meta_path.insert(0, {loader}())
'''


@dataclass(frozen=True)
class _Module:
    name: str
    text: str
    is_package: bool


def with_own_modules(text: str, tree: ast.Module, path: Path, folders: Sequence[Path]) -> str:
    """`text`, the Python of the file at `path` whose syntax tree is `tree`, with the text of the modules that it
    imports from `folders` and of those that they import; as it is where there are none, or where it holds them already.

    Nothing is executed. Raises TaskError for one of them that is no Python, and for more than MOST_BYTES.
    """
    own = _own_modules(tree, path, folders)
    if not own:
        return text
    lines = text.removesuffix("\n").split("\n")  # at no other sign: one may stand within a string
    first = next(i for i, node in enumerate(tree.body) if not _stays_on_top(node))
    at = _first_line(tree.body[first]) - 1
    return "\n".join([*lines[:at], own, "", *lines[at:]]) + "\n"


def parsed(text: str | bytes) -> ast.Module:
    """The syntax tree, without a word about odd escapes. Raises what `ast.parse` does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def whole_tree(text: str | bytes) -> ast.Module:
    """The syntax tree of a text and, behind its own statements, of the modules that it holds, each at the lines where
    it stands: what such a text does can be read nowhere else. Without those of them that are no Python. Raises what
    `ast.parse` does."""
    tree = parsed(text)
    for _, line, module in held_modules(tree):
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            tree.body += ast.increment_lineno(whole_tree(module), line).body
    return tree


def held_modules(tree: ast.Module) -> list[tuple[str, int, str]]:
    """(name, line above its first, text) of each own module that a text with this tree holds."""
    return [
        (name.value, value.lineno, value.value)
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == LOADER
        for statement in node.body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Dict)
        for name, value in zip(statement.value.keys, statement.value.values, strict=True)
        if isinstance(name, ast.Constant) and isinstance(value, ast.Constant)
        if isinstance(name.value, str) and isinstance(value.value, str)
    ]


def _own_modules(tree: ast.Module, path: Path, folders: Sequence[Path]) -> str:
    """Text that makes a file's own modules importable; empty where there are none."""
    held = {name for name, _, _ in held_modules(tree)}
    found: dict[str, _Module] = {}
    waiting = [name for name in _imported(tree, "") if name.partition(".")[0] != path.stem]
    while waiting:
        name = waiting.pop()
        module = None if name in found or name in held else _module(name, folders)
        if module is None:
            continue
        found[name] = module
        if sum(len(each.text) for each in found.values()) > MOST_BYTES:
            raise TaskError(
                f"{path}: imports over {MOST_BYTES // 1000} kB of text that lies beside it, in {len(found)} modules "
                "and more; give a file that imports only what its class needs"
            )
        package = name if module.is_package else name.rpartition(".")[0]
        waiting += _imported(_tree_of(module, path), package)
    return _rendered([found[name] for name in sorted(found)]) if found else ""


def _stays_on_top(node: ast.stmt) -> bool:
    """A docstring or a `from __future__` import: nothing may stand before them."""
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


def _first_line(node: ast.stmt) -> int:
    """Where a statement begins, decorators included."""
    decorators = getattr(node, "decorator_list", [])
    lines: list[int] = [node.lineno, *(decorator.lineno for decorator in decorators)]
    return min(lines)


def forget_own_modules() -> None:
    """Drop what texts that were executed in this process made importable: it may hold fake tensors, and be called as
    another text's is. What the process imported from files stays."""
    own = [name for name, module in sys.modules.items() if type(getattr(module, "__loader__", 0)).__name__ == LOADER]
    for name in own:
        del sys.modules[name]
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != LOADER]


def quoted(text: str) -> str:
    """A triple-quoted literal that evaluates to `text`."""
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'"""\\\n{escaped}"""' if not escaped.endswith('"') else repr(text)


def _rendered(modules: Sequence[_Module]) -> str:
    return _TEXT.format(
        loader=LOADER,
        packages=tuple(module.name for module in modules if module.is_package),
        texts="\n".join(f"        {module.name!r}: {quoted(module.text)}," for module in modules),
    )


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    """Full names of what may be modules: `from a.b import c` may mean a module `a.b.c`, and needs `a` and `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join(filter(None, [*above, node.module or ""]))
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in filter(None, names):
            parts = name.split(".")
            yield from (".".join(parts[: count + 1]) for count in range(len(parts)))


def _module(name: str, folders: Sequence[Path]) -> _Module | None:
    """The module of that name where it lies in one of the folders; a folder without `__init__.py` is none by itself."""
    root = name.partition(".")[0]
    if root in sys.stdlib_module_names or root == "torch":
        return None
    for folder in folders:
        stem = folder.joinpath(*name.split("."))
        for file, is_package in ((stem / "__init__.py", True), (stem.with_suffix(".py"), False)):
            if file.is_file():
                return _Module(name, _read(file), is_package)
    return None


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{file}: cannot be read: {error}") from None


def _tree_of(module: _Module, path: Path) -> ast.Module:
    try:
        return parsed(module.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise TaskError(f"{module.name}, which {path} imports: cannot be parsed: {error}") from None
