"""From what a person types to tasks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from os.path import expanduser
from pathlib import Path

from cuda_l1.errors import TaskError
from cuda_l1.tasks.dataset import dataset_tasks
from cuda_l1.tasks.file_task import file_task
from cuda_l1.tasks.folders import checkout_tasks, folder_tasks, no_tasks
from cuda_l1.tasks.public_sets import PUBLIC_SETS, public_tasks
from cuda_l1.tasks.release import read_release, release_tasks
from cuda_l1.tasks.selection import select
from cuda_l1.tasks.suite import builtin_names, builtin_suite, builtin_task, unknown_name
from cuda_l1.tasks.synth.suite import synth_folder, synth_suite
from cuda_l1.tasks.weight_files import load_weights
from cuda_l1.types import Task


def _public(kind: str, rest: str, device: str, dtype: str | None) -> list[Task]:
    return public_tasks(kind, Path(rest), dtype)


SUITES: dict[str, Callable[[str, str, str | None], list[Task]]] = {
    "kernelbench": lambda rest, device, dtype: checkout_tasks(Path(rest), dtype=dtype),
    "hf": lambda rest, device, dtype: dataset_tasks(rest, dtype=dtype),
    "release": lambda rest, device, dtype: release_tasks(Path(rest), dtype=dtype),
    "synth": lambda rest, device, dtype: synth_suite(rest, device=device, dtype=dtype),
    **{kind: partial(_public, kind) for kind in PUBLIC_SETS},
}
"""Suites that are named with a prefix, `kernelbench:PATH`: from what stands behind the colon, a device and a dtype."""


def load_tasks(
    spec: str,
    *,
    device: str = "cpu",
    dtype: str | None = None,
    inputs: str | None = None,
    init: str | None = None,
    weights: str | None = None,
) -> list[Task]:
    """The tasks that `spec` names; files are read and never executed.

    `spec`: a built-in task (`diagonal_matmul`, `diagonal_matmul-bf16`), `builtin` for the whole suite, a file in
    KernelBench's format, `file.py::ClassName`, any folder of such files, `kernelbench:PATH` for a checkout of
    KernelBench, `hf:OWNER/NAME` for it as a Hugging Face dataset, `release:FILE` for the references of CUDA-L1's
    release or of one like it, `synth:0` for the synthetic tasks of a seed, `synth:FOLDER` for audited ones,
    `kernelbook:PATH` and others of `cuda_l1.tasks.public_sets` for training sets on disk. Behind what names several
    tasks `#` may choose some: `kernelbench:PATH#level1-3`, `builtin#*_matmul` (see `cuda_l1.tasks.selection`). A path
    may begin with `~`, as no shell expands one behind a colon.

    `device` (`cpu`, `cuda`, `cuda:N`) chooses the sizes of built-in and synthetic tasks; `dtype` (`fp32`, `bf16`, ...)
    that of parameters and inputs; `inputs` and `init` describe the arguments of one file's class (see
    `cuda_l1.tasks.input_spec` and `init_args`); `weights` is a safetensors file or a saved state_dict for one task.
    Raises TaskError, one line, where any of it is wrong.
    """
    if not spec.strip():
        raise TaskError("no task is named; give a file, `file.py::ClassName` or one that `cuda-l1 tasks list` names")
    spec = at_home(spec)
    suite, selection = _parts(spec)
    if not suite.strip():
        raise TaskError(f"`{spec}`: nothing stands before `#`; write what to choose from, e.g. builtin#{selection}")
    several = _suite(suite, device, dtype)
    if several is None:
        if selection is not None:
            raise TaskError(f"`{spec}`: `#` chooses from a suite or a folder, and `{suite}` is neither")
        if _is_builtin(spec):
            return [_builtin(spec, device, dtype, inputs or init, weights)]
        return [_file(spec, dtype=dtype, inputs=inputs, init=init, weights=weights)]
    for option, value in (("--inputs", inputs), ("--init", init), ("--weights", weights)):
        if value is not None:
            raise TaskError(f"{option} is for one task, and `{spec}` names several; give one file")
    return several if selection is None else select(several, selection, suite)


def suite_problems(spec: str) -> tuple[str, ...]:
    """What of a suite could not be read while the rest can, one line each. Raises TaskError as `load_tasks` does."""
    prefix, _, rest = _parts(at_home(spec))[0].partition(":")
    if prefix == "release":
        return read_release(Path(rest)).problems
    return no_tasks(Path(rest)) if prefix == "kernelbench" else ()


def load_task(
    spec: str,
    *,
    device: str = "cpu",
    dtype: str | None = None,
    inputs: str | None = None,
    init: str | None = None,
    weights: str | None = None,
) -> Task:
    """The one task that `spec` names; as `load_tasks`, and TaskError with the choices where there are several."""
    tasks = load_tasks(spec, device=device, dtype=dtype, inputs=inputs, init=init, weights=weights)
    if len(tasks) > 1:
        one = f"{_parts(at_home(spec))[0]}#{tasks[0].name}"
        raise TaskError(f"`{spec}` names {len(tasks)} tasks, one is wanted; choose one, e.g. '{one}'")
    return tasks[0]


def at_home(spec: str) -> str:
    """The same with the path of a home for a `~` that its path begins with."""
    prefix, separator, rest = spec.partition(":")
    return f"{prefix}:{expanduser(rest)}" if separator and prefix in SUITES else expanduser(spec)


def _parts(spec: str) -> tuple[str, str | None]:
    """(what names the tasks, the selection behind `#` or None); a path may have a `#` of its own."""
    suite, separator, selection = spec.rpartition("#")
    if not separator or Path(spec).exists() or (":" in spec and Path(spec.partition(":")[2]).exists()):
        return spec, None
    return suite, selection


def _suite(spec: str, device: str, dtype: str | None) -> list[Task] | None:
    """The tasks of what names several; None for anything else."""
    prefix, separator, rest = spec.partition(":")
    if separator and prefix in SUITES and not rest.startswith(":"):
        if not rest:
            raise TaskError(f"`{spec}`: what stands behind the colon is missing; write e.g. kernelbench:PATH")
        return SUITES[prefix](rest, device, dtype)
    if spec == "builtin":
        return builtin_suite(device=device, dtype=dtype)
    if Path(spec).is_dir() and not _is_builtin(spec):
        return synth_folder(Path(spec), dtype=dtype) or folder_tasks(Path(spec), dtype=dtype)
    if prefix.lower() in SUITES and not Path(spec).exists() and not rest.startswith(":"):
        raise TaskError(f"`{spec}`: write {prefix.lower()}:{rest or 'PATH'}")
    return None


def _meant(spec: str) -> tuple[str, ...]:
    """The file that was meant where its ending, or one of the two colons before a class, is missing."""
    file, _, class_name = spec.partition(".py:")
    meant = f"{file}.py::{class_name}" if class_name.isidentifier() else f"{spec}.py"
    return (meant,) if Path(f"{file}.py").is_file() else ()


def _is_builtin(spec: str) -> bool:
    name = spec.removeprefix("builtin/")
    return name in builtin_names() or name.rpartition("-")[0] in builtin_names()


def _builtin(spec: str, device: str, dtype: str | None, described: str | None, weights: str | None) -> Task:
    if described is not None:
        raise TaskError(f"--inputs and --init describe a class of your own; the built-in task `{spec}` has its own")
    task = builtin_task(spec.removeprefix("builtin/"), device=device, dtype=dtype)
    return task.model_copy(update={"weights": load_weights(weights)}) if weights else task


def _file(spec: str, *, dtype: str | None, inputs: str | None, init: str | None, weights: str | None) -> Task:
    path, separator, class_name = spec.partition("::")
    if separator and not class_name.isidentifier():
        raise TaskError(f"`{spec}`: `{class_name}` is not the name of a class; write file.py::ClassName")
    looks_like_path = path.endswith(".py") or "/" in path or bool(separator)
    if not looks_like_path and not Path(path).is_file():
        raise TaskError(unknown_name(spec, _meant(spec)))
    return file_task(Path(path), class_name=class_name or None, dtype=dtype, inputs=inputs, init=init, weights=weights)
