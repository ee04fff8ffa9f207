"""A file's own modules: what it imports from beside itself. Their text goes into the task's, so that the task is whole.

The sandbox reads none of the user's folders, and a digest that left them out would call a changed task the same.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cuda_l1.errors import TaskError

MOST_BYTES = 1_000_000
"""Of all own modules together: a file that imports more imports a whole project, whose text no task should hold."""

LOADER = "_OwnModules"
"""Name of the class in the task's text that finds them; `sys.meta_path` holds one for each text that was executed."""

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


def own_modules(path: Path, tree: ast.Module) -> str:
    """Text that makes the modules of its own importable which the file at `path` imports, and those which they import;
    empty where there are none.

    They are looked for in the file's folder and in the working directory. Nothing is executed. Raises TaskError for a
    relative import of the file itself, for one of theirs that is no Python, and for more than MOST_BYTES.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            raise TaskError(f"{path}:{node.lineno}: relative import; a task is one file, import by the full name")
    folders = tuple(dict.fromkeys((path.resolve().parent, Path.cwd())))
    found: dict[str, _Module] = {}
    waiting = [name for name in _imported(tree, "") if name.partition(".")[0] != path.stem]
    while waiting:
        name = waiting.pop()
        module = None if name in found else _module(name, folders)
        if module is None:
            continue
        found[name] = module
        if sum(len(each.text) for each in found.values()) > MOST_BYTES:
            raise TaskError(
                f"{path}: imports over {MOST_BYTES // 1000} kB of text that lies beside it, in {len(found)} modules "
                "and more; give a file that imports only what its class needs"
            )
        package = name if module.is_package else name.rpartition(".")[0]
        waiting += _imported(_parsed(module), package)
    return _rendered([found[name] for name in sorted(found)]) if found else ""


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


def _parsed(module: _Module) -> ast.Module:
    try:
        return ast.parse(module.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise TaskError(f"{module.name}, which the task imports: cannot be parsed: {error}") from None
