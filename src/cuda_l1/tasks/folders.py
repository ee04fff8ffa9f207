"""Folders of task files: a checkout of KernelBench, one of its levels, or any folder."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path

from cuda_l1.errors import TaskError
from cuda_l1.tasks.file_task import file_task
from cuda_l1.tasks.source_file import SourceFile, identity
from cuda_l1.texts import read_text
from cuda_l1.types import Task


def folder_tasks(folder: Path, *, dtype: str | None = None) -> list[Task]:
    """Every task below `folder`, in the order of level and number; nothing is executed.

    A checkout of KernelBench (with `KernelBench/level1`, ...) or a folder of levels gives all levels. In any other
    folder each `.py` file with `Model` and `get_inputs` is a task and other files are passed over, Python or not.
    Raises TaskError where there is none, or where a file cannot be read, or has these and does not parse.
    """
    files = [path for level in _levels(folder) for path in _files(level)] or _files(folder)
    tasks = [file_task(path, dtype=dtype) for path in files if _is_task(path)]
    if not tasks:
        raise TaskError(f"{folder}: no file here defines `Model` and `get_inputs`")
    return tasks


def checkout_tasks(folder: Path, *, dtype: str | None = None) -> list[Task]:
    """Every task of a checkout of KernelBench, of its folder of levels, or of one level; nothing is executed.

    Raises TaskError where the folder or its levels are not there, and where two files of a level have one number.
    """
    files = _problems(folder)
    require_single((identity(path)[2] or 0, path.name, str(path)) for path in files)
    tasks = [file_task(path, dtype=dtype) for path in files if _is_task(path)]
    if not tasks:
        raise TaskError(f"kernelbench:{folder}: its levels hold no file that defines `Model` and `get_inputs`")
    return tasks


def no_tasks(folder: Path) -> tuple[str, ...]:
    """A line for each file of a checkout that has a problem's number and is none. Raises TaskError as `checkout_tasks`
    does."""
    return tuple(
        f"{path}: is passed over: it defines no `Model` and `get_inputs`"
        for path in _problems(folder)
        if not _is_task(path)
    )


def _problems(folder: Path) -> list[Path]:
    """The files of a checkout whose names begin with a number."""
    if not folder.is_dir():
        raise TaskError(
            f"kernelbench:{folder}: {'is a file' if folder.exists() else 'no such folder'}; give a checkout"
        )
    levels = _levels(folder)
    if not levels and re.fullmatch(r"level\d+", folder.resolve().name):
        levels = [folder]
    if not levels:
        raise TaskError(
            f"kernelbench:{folder}: no level is here; give the folder of a checkout, with KernelBench/level1 in it "
            f"(a folder of other tasks is named without `kernelbench:`)"
        )
    return [path for level in levels for path in _files(level) if identity(path)[0] == "kernelbench"]


def require_single(problems: Iterable[tuple[int, str, str]]) -> None:
    """Raises TaskError where two of the problems, (level, name that begins with its number, where), share a number."""
    seen: dict[tuple[int, int], str] = {}
    for level, name, where in problems:
        number = re.match(r"\d+", name)
        if number is None:
            continue
        first = seen.setdefault((level, int(number[0])), where)
        if first != where:
            raise TaskError(f"two tasks are level{level}/{int(number[0])}: {first} and {where}; remove one")


def _levels(folder: Path) -> list[Path]:
    for root in (folder / "KernelBench", folder):
        levels = [path for path in root.glob("level*") if path.is_dir() and re.fullmatch(r"level\d+", path.name)]
        if levels:
            return sorted(levels, key=lambda path: int(path.name[5:]))
    return []


def _files(folder: Path) -> list[Path]:
    return sorted((path for path in folder.glob("*.py") if path.is_file()), key=_by_number)


def _by_number(path: Path) -> tuple[float, str]:
    number = re.match(r"\d+", path.name)
    return (int(number[0]) if number else float("inf"), path.name)


def _is_task(path: Path) -> bool:
    with contextlib.suppress(OSError):  # which is told below, as of a task
        if "get_inputs" not in read_text(path, errors="replace"):  # a script beside the tasks need not be Python 3
            return False
    names = SourceFile(path).names
    return "Model" in names and "get_inputs" in names
