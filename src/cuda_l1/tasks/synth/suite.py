"""Synthetic tasks by name: `synth:0`, `synth:0:5000`, `synth:FOLDER`."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from cuda_l1.errors import TaskError
from cuda_l1.tasks.file_task import source_task
from cuda_l1.tasks.source_file import SourceFile
from cuda_l1.tasks.synth.folder import MANIFEST, is_synth_folder, read_folder
from cuda_l1.tasks.synth.generate import synthetic_tasks
from cuda_l1.tasks.synth.sizes import SMALL, for_memory
from cuda_l1.tasks.synth.splits import SPLITS
from cuda_l1.types import Task

DEFAULT_COUNT = 1000
MOST = 100_000
GPU_GIB = 24.0
"""For a GPU: sizes that fit on any current one."""


def synth_suite(rest: str, *, device: str = "cpu", dtype: str | None = None) -> list[Task]:
    """What stands behind `synth:`, a folder with a manifest or SEED or SEED:COUNT, as tasks.

    By seed: the first 1,000 (or COUNT) of its stream, generated and not audited, small ones for a CPU and larger ones
    for a GPU. Raises TaskError.
    """
    tasks = read_folder(Path(rest)) if (Path(rest) / MANIFEST).is_file() else _of_seed(rest, device)
    return tasks if dtype is None else [_cast(task, rest, dtype) for task in tasks]


def synth_folder(folder: Path, *, dtype: str | None = None) -> list[Task] | None:
    """The tasks of a folder that `cuda-l1 tasks synth` wrote, or of one of its splits, as `synth:` names them; None for
    any other folder. Raises TaskError as `synth_suite` does."""
    if is_synth_folder(folder):
        return synth_suite(str(folder), dtype=dtype)
    whole = folder.resolve().parent
    if folder.resolve().name not in SPLITS or not is_synth_folder(whole):
        return None
    tasks = synth_suite(str(whole), dtype=dtype)
    return [task for task in tasks if task.name.startswith(f"{folder.resolve().name}/")]


def _cast(task: Task, rest: str, dtype: str) -> Task:
    source = SourceFile(Path(f"synth:{rest}/{task.name}"), text=task.source)
    return source_task(source, task.suite, task.name, task.level, dtype=dtype)


def _of_seed(rest: str, device: str) -> list[Task]:
    found = re.fullmatch(r"(\d{1,18})(?::(\d{1,6}))?", rest)
    if not found:
        raise TaskError(f"synth:{rest}: give a seed (synth:0), a seed and a count (synth:0:5000), or a folder that "
                        f"`cuda-l1 tasks synth --out` wrote")  # fmt: skip
    count = int(found[2] or DEFAULT_COUNT)
    if not 1 <= count <= MOST:
        raise TaskError(f"synth:{rest}: the count is from 1 to {MOST}")
    scale = for_memory(GPU_GIB) if device.startswith("cuda") else SMALL
    return [made.task for made in itertools.islice(synthetic_tasks(int(found[1]), scale), count)]
