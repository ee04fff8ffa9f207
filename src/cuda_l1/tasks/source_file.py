"""Read a task file without executing it: what it defines, and what is wrong with it, in one line."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from cuda_l1.errors import TaskError
from cuda_l1.tasks.own_modules import parsed, with_own_modules
from cuda_l1.texts import read_text


class SourceFile:
    """The text of a Python file and the names that it defines at module level."""

    def __init__(self, path: Path, text: str | None = None) -> None:
        """`text`: what stands at `path` where that is no file, a row of a dataset, say.

        Raises TaskError for a file that is missing, not text, or not Python, naming file and line.
        """
        self.path = path
        self.text = _read(path) if text is None else text
        self.tree = _parse(path, self.text)
        self.names = _defined(self.tree)

    @property
    def classes(self) -> list[str]:
        """Names of the classes defined at module level, in order."""
        return [node.name for node in self.tree.body if isinstance(node, ast.ClassDef)]

    def constructor(self, class_name: str) -> ast.arguments | None:
        """The arguments of a class's own `__init__`, or None where it has none in this file."""
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef) and node.name == class_name:
                for member in node.body:
                    if isinstance(member, ast.FunctionDef) and member.name == "__init__":
                        return member.args
        return None

    def runnable_text(self) -> str:
        """The text; the user's own modules that it imports come first, as text of its own.

        They are looked for in the file's folder and in the working directory. Raises TaskError for relative imports,
        which a single file cannot resolve, and as `with_own_modules` does.
        """
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                raise TaskError(
                    f"{self.path}:{node.lineno}: relative import; a task is one file, import by the full name"
                )
        folders = tuple(dict.fromkeys((self.path.resolve().parent, Path.cwd())))
        return with_own_modules(self.text, self.tree, self.path, folders)


def _read(path: Path) -> str:
    try:
        return read_text(path, encoding="utf-8-sig")  # some editors put a mark in front
    except FileNotFoundError:
        raise TaskError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise TaskError(f"{path}: is a folder, not a file") from None
    except UnicodeDecodeError as error:
        raise TaskError(f"{path}: is not text in UTF-8 (byte {error.start}); save it in UTF-8") from None
    except OSError as error:
        raise TaskError(f"{path}: cannot be read: {error.strerror}") from None


def _parse(path: Path, text: str) -> ast.Module:
    try:
        return parsed(text)
    except SyntaxError as error:
        raise TaskError(f"{path}:{error.lineno or 1}: syntax error: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise TaskError(f"{path}: cannot be parsed: {str(error) or 'nested too deep'}") from None


def _defined(tree: ast.Module) -> dict[str, int]:
    """name -> line of everything that the module's own statements bind, also inside `if`, `try` and `with`."""
    names: dict[str, int] = {}

    def visit(node: ast.AST) -> None:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            names.setdefault(node.name, node.lineno)
            return
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                names.setdefault((alias.asname or alias.name).split(".")[0], node.lineno)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.setdefault(node.id, node.lineno)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(tree)
    return names


def identity(path: Path) -> tuple[str, str, int | None]:
    """(suite, name, level) of a file: KernelBench's own names for a file in one of its level folders."""
    parent = path.resolve().parent.name
    level = re.fullmatch(r"level(\d+)", parent)
    if level and re.match(r"\d+_", path.name):
        return "kernelbench", f"{parent}/{path.stem}", int(level[1])
    return "file", path.stem, None
