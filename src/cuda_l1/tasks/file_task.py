"""A task from one file: a KernelBench-format file as it is, or a class of it with inputs from the command line."""

from __future__ import annotations

from pathlib import Path

from cuda_l1.errors import TaskError
from cuda_l1.tasks.dtypes import cast_inputs, cast_model, float_dtype
from cuda_l1.tasks.init_args import by_keyword_too, parse_init, render_init, required
from cuda_l1.tasks.input_function import is_function, render_function
from cuda_l1.tasks.input_spec import described_floats, render_inputs
from cuda_l1.tasks.source_file import SourceFile, identity
from cuda_l1.tasks.weight_files import load_weights
from cuda_l1.types import Task

_RULE = "\n\n# ── Appended by cuda-l1: what the caller said of this task ──\n"


def file_task(
    path: Path,
    *,
    class_name: str | None = None,
    dtype: str | None = None,
    inputs: str | None = None,
    init: str | None = None,
    weights: str | None = None,
) -> Task:
    """The task of a file; nothing of the file is executed.

    What the arguments add is appended to the file's text, so that the source stays the whole task:
    - `class_name`: the class to optimise, where it is not called `Model`;
    - `inputs`: the language of `input_spec`, a `.pt` file or `module:function`, in place of the file's `get_inputs`;
    - `init`: constructor arguments in place of `get_init_inputs`; a file without one takes none;
    - `dtype`: floating parameters, and inputs that do not name a dtype, in this dtype; where it is not given and all
      floating inputs are described in one dtype, parameters follow it.
    Raises TaskError, one line.
    """
    return source_task(
        SourceFile(path), *identity(path), class_name=class_name, dtype=dtype, inputs=inputs, init=init, weights=weights
    )


def source_task(
    source: SourceFile,
    suite: str,
    name: str,
    level: int | None,
    *,
    class_name: str | None = None,
    dtype: str | None = None,
    inputs: str | None = None,
    init: str | None = None,
    weights: str | None = None,
) -> Task:
    """The task of a text under a suite's own name for it; the other arguments are those of `file_task`.

    A text of suite `file` may import what lies beside it. Raises TaskError.
    """
    target = _target(source, class_name)
    short = float_dtype(dtype) if dtype else None
    appended = [f"Model = {target}\n"] if target != "Model" else []
    drawing = _inputs(source, inputs, short)
    appended += [*_init(source, target, init), *drawing]
    model_dtype = short or _dtype_of(inputs)
    if model_dtype:
        appended.append(cast_model(model_dtype))
    text = source.runnable_text() if suite == "file" else source.text
    if appended:
        text = (
            text.rstrip("\n") + _RULE + "import torch\n\n" + "\n\n".join(part.strip("\n") + "\n" for part in appended)
        )
    if class_name:
        name = f"{name}.{class_name}"
    if model_dtype:
        name = f"{name}-{model_dtype}"
    return Task(suite=suite, name=name, level=level, source=text, weights=load_weights(weights) if weights else None)


def _target(source: SourceFile, class_name: str | None) -> str:
    """The name of the class to optimise; TaskError with the choices where it is not there."""
    target = class_name or "Model"
    if target in source.names:
        return target
    if class_name is None and "ModelNew" in source.classes:
        raise TaskError(
            f"{source.path}: defines `ModelNew`, as a candidate does; a task defines `Model`, and comes first"
        )
    if source.classes:
        choices = " or ".join(f"{source.path}::{name}" for name in source.classes[:4])
        raise TaskError(f"{source.path}: defines no `{target}`; choose a class: {choices}")
    raise TaskError(f"{source.path}: defines no `{target}` (a class derived from torch.nn.Module)")


def _init(source: SourceFile, target: str, init: str | None) -> list[str]:
    if init is not None:
        return [render_init(*parse_init(init), source.constructor(target))]
    if "get_init_inputs" not in source.names:
        if wanted := required(source.constructor(target)):
            example = ", ".join(f"{name}=..." for name in wanted)
            raise TaskError(f"{source.path}: the constructor of `{target}` takes arguments: --init '{example}'")
        return [render_init([], {}, None)]
    given = by_keyword_too(source.tree, source.constructor(target))
    return [given] if given else []


def _inputs(source: SourceFile, inputs: str | None, short: str | None) -> list[str]:
    if inputs is None:
        if "get_inputs" not in source.names:
            raise TaskError(
                f"{source.path}: defines no `get_inputs`; add one, or describe the inputs: --inputs 'randn(8, 128)'"
            )
        return [cast_inputs(short)] if short else []
    if is_function(inputs):
        drawing = render_function(inputs)
    elif inputs.strip().endswith((".pt", ".pth")):
        from cuda_l1.tasks.examples import render_saved

        drawing = render_saved(Path(inputs.strip()))
    else:
        return [render_inputs(inputs, dtype=short)]
    return [drawing, cast_inputs(short)] if short else [drawing]


def _dtype_of(inputs: str | None) -> str | None:
    """The one dtype other than fp32 in which all floating inputs are described, or None."""
    if inputs is None or is_function(inputs) or inputs.strip().endswith((".pt", ".pth")):
        return None
    floats = described_floats(inputs)
    return floats.pop() if len(floats) == 1 and floats != {"fp32"} else None
