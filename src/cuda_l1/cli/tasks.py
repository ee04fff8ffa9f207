"""`cuda-l1 tasks`: what can be optimised, what it looks like, and whether its verdicts mean something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cuda_l1.cli import options as o
from cuda_l1.cli.boundary import NOTHING_ACCEPTED, command
from cuda_l1.cli.output import Output
from cuda_l1.cli.synth import synth

if TYPE_CHECKING:
    from cuda_l1.types import TaskAudit

tasks_app = typer.Typer(
    help="List, show, audit and generate tasks.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
NOTHING = "nothing was changed"
WHICH = "A built-in name, `builtin` for all of them, a file, file.py::ClassName, a folder, or `synth:0`."

Spec = Annotated[str, typer.Argument(metavar="TASK", help=WHICH)]


@tasks_app.command("list")
@command(kept=NOTHING)
def list_tasks(spec: Spec = "builtin", device: o.Device = "auto", dtype: o.Dtype = None, json: o.Json = False) -> None:
    """The tasks that SPEC names.

    Example: cuda-l1 tasks list KernelBench/level1
    """
    from cuda_l1.api.places import resolve_device
    from cuda_l1.report.terminal import table
    from cuda_l1.tasks import load_tasks

    output = Output(as_json=json)
    tasks = load_tasks(spec, device=resolve_device(device), dtype=dtype)
    _say_what_is_missing(spec)
    for task in tasks:
        output.record("task", task)
    rows = [(task.name, task.suite, task.sha[:12], _first_line(task.source)) for task in tasks]
    output.show(table(("task", "suite", "sha", "what"), rows))
    output.summary(tasks=len(tasks))


@tasks_app.command()
@command(kept=NOTHING)
def show(
    spec: Spec,
    device: o.Device = "auto",
    inputs: o.Inputs = None,
    init: o.Init = None,
    weights: o.Weights = None,
    dtype: o.Dtype = None,
    json: o.Json = False,
) -> None:
    """The source of one task, as it is judged.

    Example: cuda-l1 tasks show diagonal_matmul --device cpu

    Example: cuda-l1 tasks show model.py::Block --inputs 'randn(8,128,4096):bf16' --init 4096
    """
    from cuda_l1.api.places import resolve_device
    from cuda_l1.tasks import load_task

    output = Output(as_json=json)
    place = resolve_device(device)
    task = load_task(spec, device=place, dtype=dtype, inputs=inputs, init=init, weights=weights)
    output.record("task", task)
    if not json:
        output.text(f"{task.source.rstrip()}\n")
    output.summary(task_id=task.id)


@tasks_app.command()
@command(kept="audits are not stored; run it again")
def audit(
    spec: Spec,
    device: o.Device = "auto",
    inputs: o.Inputs = None,
    init: o.Init = None,
    weights: o.Weights = None,
    dtype: o.Dtype = None,
    limits: o.LimitsOption = None,
    json: o.Json = False,
) -> int:
    """Check that verdicts on SPEC mean something. Exit code 1 when one of its tasks is not sound, 2 when one does not
    run; of several the others are audited all the same.

    Example: cuda-l1 tasks audit my_task.py
    """
    from cuda_l1.api.limits import parse_limits
    from cuda_l1.api.places import resolve_device
    from cuda_l1.config import EvaluatorSettings
    from cuda_l1.errors import TaskError
    from cuda_l1.evaluator import Evaluator
    from cuda_l1.tasks import load_tasks

    output = Output(as_json=json)
    place, allowed = resolve_device(device), parse_limits(limits)
    tasks = load_tasks(spec, device=place, dtype=dtype, inputs=inputs, init=init, weights=weights)
    _say_what_is_missing(spec)
    audits: list[tuple[str, TaskAudit]] = []
    failures: dict[str, str] = {}
    with Evaluator(EvaluatorSettings(device=place, limits=allowed)) as evaluator:
        for task in tasks:
            Output.say(f"auditing {task.name}")
            try:
                found = evaluator.audit(task)
            except TaskError as error:
                if len(tasks) == 1:
                    raise
                Output.error(str(error))
                failures[task.name] = str(error)
                continue
            audits.append((task.name, found))
            output.record("audit", found, sound=found.sound)
    _show_audits(output, audits)
    unsound = [name for name, found in audits if not found.sound]
    output.summary(tasks=len(tasks), sound=len(audits) - len(unsound), unsound=unsound, failures=failures)
    if failures:
        return TaskError.exit_code
    return NOTHING_ACCEPTED if unsound else 0


tasks_app.command("synth")(synth)


def _say_what_is_missing(spec: str) -> None:
    from cuda_l1.tasks import suite_problems

    for problem in suite_problems(spec):
        Output.say(f"{spec}: {problem}")


def _show_audits(output: Output, audits: list[tuple[str, TaskAudit]]) -> None:
    from cuda_l1.report.terminal import microseconds, table

    rows = [
        (
            name,
            "yes" if found.sound else "NO",
            found.task_class,
            found.mode,
            microseconds(found.reference_us),
            "; ".join((*found.flags, *found.details)),
        )
        for name, found in audits
    ]
    output.show(table(("task", "sound", "class", "mode", "rough call", "remarks"), rows))


def _first_line(source: str) -> str:
    """What a task's text says of itself; the references of a release are texts that others wrote."""
    import ast

    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "(no Python)"
    return (ast.get_docstring(tree) or "").partition("\n")[0]
