"""Folders of task files: a checkout of KernelBench, one of its levels, or any folder."""

from __future__ import annotations

import re
from pathlib import Path

from cuda_l1.errors import TaskError
from cuda_l1.tasks.file_task import file_task
from cuda_l1.tasks.source_file import SourceFile
from cuda_l1.types import Task


def folder_tasks(folder: Path, *, dtype: str | None = None) -> list[Task]:
    """Every task below `folder`, in the order of level and number; nothing is executed.

    A checkout of KernelBench (with `KernelBench/level1`, ...) or a folder of levels gives all levels. In any other
    folder each `.py` file with `Model` and `get_inputs` is a task and other files are passed over. Raises TaskError
    where there is none, or where a file does not parse.
    """
    files = [path for level in _levels(folder) for path in _files(level)] or _files(folder)
    tasks = [file_task(path, dtype=dtype) for path in files if _is_task(path)]
    if not tasks:
        raise TaskError(f"{folder}: no file here defines `Model` and `get_inputs`")
    return tasks


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
    names = SourceFile(path).names
    return "Model" in names and "get_inputs" in names
