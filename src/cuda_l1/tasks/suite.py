"""The built-in suite: files under `builtin/`, rendered to plain KernelBench sources.

A file is a KernelBench task at its CPU sizes. Two more constants in its header, rendered away, say what else there is:
`GPU`, the sizes for a GPU, and `DTYPES`, the dtypes in which the workload makes sense.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Sequence
from importlib.resources import files

from cuda_l1.errors import TaskError
from cuda_l1.tasks.dtypes import FLOATS, TORCH_DTYPES, short_dtype
from cuda_l1.types import Task


def builtin_names() -> list[str]:
    """Names of the built-in tasks, sorted."""
    folder = files("cuda_l1.tasks") / "builtin"
    return sorted(
        entry.name[:-3] for entry in folder.iterdir() if entry.name.endswith(".py") and not entry.name.startswith("_")
    )


def builtin_dtypes(name: str) -> tuple[str, ...]:
    """The dtypes that a built-in task comes in, `fp32` first."""
    dtypes: tuple[str, ...] = ast.literal_eval(_header(_text(name))["DTYPES"].value)
    return dtypes


def builtin_task(name: str, *, device: str = "cpu", dtype: str | None = None) -> Task:
    """One built-in task at the sizes for `device` (`cpu`, `cuda`, `cuda:N`) in `dtype` (default fp32).

    A task in another dtype is called `<name>-bf16`, and that name is understood here. Raises TaskError.
    """
    base, suffix, last = name.rpartition("-")
    if suffix and last in TORCH_DTYPES:
        if dtype is not None and short_dtype(dtype) != last:
            raise TaskError(f"`{name}` is a {last} task; leave out dtype {dtype} or ask for `{base}`")
        name, dtype = base, last
    if name not in builtin_names():
        raise TaskError(unknown_name(name))
    short = short_dtype(dtype or "fp32")
    if short not in builtin_dtypes(name):
        raise TaskError(f"built-in task `{name}` comes in {' and '.join(builtin_dtypes(name))}, not in {short}")
    return Task(
        suite="builtin",
        name=name if short == "fp32" else f"{name}-{short}",
        source=render(_text(name), device=device, dtype=short),
    )


def builtin_suite(*, device: str = "cpu", dtype: str | None = None) -> list[Task]:
    """All built-in tasks; with a dtype other than fp32 those that come in it, TaskError where none does."""
    short = short_dtype(dtype or "fp32")
    names = [name for name in builtin_names() if short in builtin_dtypes(name)]
    if not names:
        offered = [known for known in FLOATS if any(known in builtin_dtypes(name) for name in builtin_names())]
        raise TaskError(f"no built-in task comes in {short}; choose one of {', '.join(offered)}")
    return [builtin_task(name, device=device, dtype=short) for name in names]


def unknown_name(name: str, meant: Sequence[str] = ()) -> str:
    """One line for a name that is neither a file nor a built-in task, with what was meant, else the closest names."""
    close = meant or difflib.get_close_matches(name, builtin_names(), n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else "`cuda-l1 tasks list` shows the built-in tasks"
    return f"`{name}` is neither a file nor a built-in task; {hint}"


def render(text: str, *, device: str, dtype: str) -> str:
    """A plain KernelBench file: sizes for `device` and `dtype` as literal constants, `GPU` and `DTYPES` gone."""
    header = _header(text)
    lines = text.splitlines()
    sizes = ast.literal_eval(header["GPU"].value) if device.startswith("cuda") else {}
    replaced = {name: f"{name} = {size!r}" for name, size in sizes.items()}
    if "DTYPE" in header:
        replaced["DTYPE"] = f"DTYPE = torch.{TORCH_DTYPES[dtype]}"
    for name, line in replaced.items():
        lines[header[name].lineno - 1] = line
    for name in ("GPU", "DTYPES"):
        for number in range(header[name].lineno - 1, header[name].end_lineno or header[name].lineno):
            lines[number] = "\0"
    kept = "\n".join(line for line in lines if line != "\0")
    while "\n\n\n\n" in kept:
        kept = kept.replace("\n\n\n\n", "\n\n\n")
    return kept + "\n"


def _text(name: str) -> str:
    return (files("cuda_l1.tasks") / "builtin" / f"{name}.py").read_text()


def _header(text: str) -> dict[str, ast.Assign]:
    """The module's constants: name -> assignment."""
    return {
        statement.targets[0].id: statement
        for statement in ast.parse(text).body
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    }
