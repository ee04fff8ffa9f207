"""The second way for a live module: the file of its class, with constructor arguments read off the module."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuda_l1.errors import TaskError
from cuda_l1.tasks.examples import render_examples
from cuda_l1.tasks.graph_source import literal
from cuda_l1.tasks.own_modules import LOADER
from cuda_l1.tasks.source_file import SourceFile

if TYPE_CHECKING:
    import torch

_FILE = """{text}


import torch

Model = {name}
{mode}
{inputs}

def get_init_inputs():
    return [{init}]
"""

_EVAL = """_construct = Model.__init__


def _construct_for_evaluation(self, *args, **kwargs):
    _construct(self, *args, **kwargs)
    self.eval()


Model.__init__ = _construct_for_evaluation
"""


def class_source(module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """A task file around the file of the module's class; TaskError where it cannot be told how to construct it.

    An argument of the constructor is the module's attribute of the same name where that is a literal, else its
    default. Of the file only imports, classes, functions and assignments are kept: a script's calls would run again.
    Whether this gives the module is not known here: `check_printed` runs it against the module.
    """
    cls = type(module)
    source = _source_of(cls)
    if kwargs:
        raise TaskError("it is called with keyword arguments")
    modes = {child.training for child in module.modules()}
    if len(modes) > 1:
        raise TaskError("parts of it are in train mode and parts in eval mode")
    return _FILE.format(
        text=_definitions(source).rstrip("\n"),
        name=cls.__name__,
        mode="" if module.training else f"\n{_EVAL}\n",
        inputs=render_examples(list(args)),
        init=", ".join(_constructor_arguments(module)),
    )


def _source_of(cls: type) -> SourceFile:
    try:
        file = inspect.getsourcefile(cls)
    except (TypeError, OSError):
        file = None
    if file is None or not Path(file).is_file():
        raise TaskError(f"the source of {cls.__name__} is not in a file")
    if cls.__module__.partition(".")[0] == "torch":
        raise TaskError(f"{cls.__name__} is a class of PyTorch's own")
    source = SourceFile(Path(file))
    if cls.__qualname__ not in source.classes:
        raise TaskError(f"{cls.__qualname__} is not defined at the top level of {file}")
    return source


def _definitions(source: SourceFile) -> str:
    """The file without statements that do something when it is run as a script."""
    text = source.runnable_text()
    kept = [
        ast.get_source_segment(text, node) if not getattr(node, "decorator_list", None) else ast.unparse(node)
        for node in ast.parse(text).body
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.Assign, ast.AnnAssign))
        or _is_path_line(node)
    ]
    return "\n\n".join(segment for segment in kept if segment)


def _is_path_line(node: ast.stmt) -> bool:
    text = ast.unparse(node) if isinstance(node, ast.Expr) else ""
    return text.startswith("sys.path.insert(0, '") or text == f"sys.meta_path.insert(0, {LOADER}())"


def _constructor_arguments(module: torch.nn.Module) -> list[str]:
    """Literals for the positional arguments of `__init__`, read off attributes of the same names."""
    texts: list[str] = []
    for parameter in list(inspect.signature(type(module).__init__).parameters.values())[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.KEYWORD_ONLY):
            if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
                raise TaskError(f"its constructor needs `{parameter.name}` by keyword")
            break
        missing = object()
        value = getattr(module, parameter.name, missing)
        try:
            texts.append(literal(parameter.default if value is missing else value))
        except TaskError:
            raise TaskError(f"its constructor's argument `{parameter.name}` cannot be read off the module") from None
    return texts
