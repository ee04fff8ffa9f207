"""`--inputs module:function`: inputs made by a function of the user's, called inside the sandbox."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

from cuda_l1.errors import TaskError
from cuda_l1.tasks.own_modules import quoted
from cuda_l1.tasks.source_file import SourceFile

_CALL = """
def get_inputs():
    made = {function}()
    return list(made) if isinstance(made, (list, tuple)) else [made]
"""

_OWN_FILE = """
_inputs_module = {{"__name__": {module!r}}}
exec(compile({text}, {file!r}, "exec"), _inputs_module)
"""


def is_function(text: str) -> bool:
    """Whether a description is `module:function` or `file.py:function`, and no number with a dtype behind it."""
    found = re.fullmatch(r"([\w./-]+):[A-Za-z_]\w*", text.strip())
    return found is not None and not _is_literal(found[1])


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return True


def render_function(text: str) -> str:
    """Text that defines `get_inputs()` as a call of the function; nothing of it is run here.

    The function returns the arguments of `forward` as a list or tuple, or the only one. Where the module's file can be
    found (by path, in the working directory or on `sys.path`), its text is written into the task, so that the task is
    whole; else the module is imported by name and must be importable inside the sandbox. Raises TaskError.
    """
    module, _, function = text.strip().rpartition(":")
    path = _file_of(module)
    if path is None:
        if "/" in module or module.endswith(".py"):
            raise TaskError(f"--inputs {text}: {module}: no such file")
        if not all(part.isidentifier() for part in module.split(".")):
            raise TaskError(f"--inputs {text}: `{module}` is not the name of a module; give its file, {module}.py say")
        return f"import {module}\n\n" + _CALL.format(function=f"{module}.{function}")
    source = SourceFile(path)
    if function not in source.names:
        raise TaskError(f"{path}: defines no `{function}`")
    own = _OWN_FILE.format(module=path.stem, text=quoted(source.runnable_text()), file=path.name)
    return own + "\n" + _CALL.format(function=f'_inputs_module["{function}"]')


def _file_of(module: str) -> Path | None:
    """The file of a module, found without importing its packages."""
    if module.endswith(".py") or "/" in module:
        path = Path(module)
        return path if path.is_file() else None
    parts = module.split(".")
    for folder in dict.fromkeys(["", *sys.path]):
        stem = Path(folder or ".").joinpath(*parts)
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            if path.is_file():
                return path
    return None
