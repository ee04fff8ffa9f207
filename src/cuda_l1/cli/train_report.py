"""`cuda-l1 train report` and `train evaluate`: what a training run has learned."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuda_l1.cli import options as o
from cuda_l1.cli.boundary import command
from cuda_l1.cli.output import Output
from cuda_l1.cli.targets import check_folder
from cuda_l1.errors import UsageError
from cuda_l1.texts import many

if TYPE_CHECKING:
    from rich.table import Table

    from cuda_l1.report.learning import Panel

KINDS = {
    "unseen_pairs": "pairs of operators that training never shows together",
    "unseen_graphs": "other graphs that training never shows",
}
"""Of synthetic held-out tasks."""
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The run_dir of its recipe.")]


@command(kept="nothing was changed")
def train_report(
    run: RunFolder,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FOLDER", help="Where the page goes; default: RUN/report.")
    ] = None,
    json: o.Json = False,
) -> None:
    """The curves of a training run as a page, and each figure's first, least, greatest and last value.

    Example: cuda-l1 train report runs/smoke-cpu
    """
    from cuda_l1.api.training_report import stage_panels, time_splits
    from cuda_l1.report.site.learning import check_folder as check_page
    from cuda_l1.report.site.learning import write_page
    from cuda_l1.training.held_out import read_result
    from cuda_l1.training.run_directory import RunDirectory

    found = RunDirectory.open(run)
    folder = html or run / "report"
    check_folder("--html", folder)
    check_page(folder)
    stages = stage_panels(found)
    if not stages:
        raise UsageError(f"{run}: no stage has logged anything yet; `cuda-l1 train all RECIPE.toml` trains")
    output = Output(as_json=json)
    output.show(_table(stages))
    for stage, panels in stages.items():
        for curve in (curve for panel in panels for curve in panel.curves):
            output.record("curve", {"stage": stage, "figure": curve.name, "points": curve.points})
    splits = time_splits(found)
    for stage, split in splits.items():
        output.show(_split_line(stage, split))
    held_out = read_result(found)
    if held_out:
        output.show(*_held_out_lines(held_out))
    page = write_page(run.name, stages, folder)
    output.show(f"written: {page}")
    output.summary(path=str(page), stages=list(stages), held_out=held_out, step_time=splits)


@command(kept="replies and verdicts are kept, and the same command goes on from there")
def train_evaluate(run: RunFolder, json: o.Json = False) -> None:
    """The last finished stage's policy on tasks that decided nothing in the run: once; later calls show the same.

    Example: cuda-l1 train evaluate runs/smoke-cpu
    """
    from cuda_l1.api.training_evaluation import evaluate_run
    from cuda_l1.training.stages import Event

    output = Output(as_json=json)

    def on_event(event: Event) -> None:
        Output.say(f"{event.stage}: {event.text}")

    found = evaluate_run(run, on_event=on_event)
    output.show(*_held_out_lines(found))
    output.summary(**found)


def _held_out_lines(found: dict[str, Any]) -> list[str]:
    named = {f"held-out, {found['policy']}": found}
    for kind, name in KINDS.items():
        if kind in found:
            named[f"held-out, {name}"] = found[kind]
    named |= found.get("suites", {})
    return [f"{name}: {_figures(figures)}" for name, figures in named.items()]


def _figures(found: dict[str, Any]) -> str:
    from cuda_l1.report.cells import times

    shown = {}
    if found["tasks"]:
        shown = {
            "right": f"{found['pass_rate']:.0%} of {found['replies']} replies",
            "tasks solved": f"{found['tasks_solved']:.0%} of {found['tasks']}",
            "faster": f"{found['tasks_faster']:.0%}",
            "best of a task": f"{times(found['speedup_best_of_task'])} (screen, geometric mean)",
        }
    said = [", ".join(f"{name} {text}" for name, text in shown.items()), _unjudged(found), _left_out(found)]
    return "; ".join(filter(None, said))


def _unjudged(found: dict[str, Any]) -> str:
    """Nothing, too, of results that do not count them."""
    replies, tasks = found.get("unjudged_replies", 0), found.get("unjudged_tasks", 0)
    nor = f", nor any to {tasks} more tasks" if tasks else ""
    return f"{replies} more replies could not be judged{nor}" if replies else ""


def _left_out(found: dict[str, Any]) -> str:
    tasks = found.get("left_out", 0)
    return (
        f"{many(tasks, 'task')} left out, since their questions do not fit into the policy's context" if tasks else ""
    )


def _split_line(stage: str, split: dict[str, float]) -> str:
    parts = ", ".join(f"{name} {split[f'{name}_s']:.2g} s" for name in ("generate", "wait", "train"))
    evaluators = ", ".join(f"{name} {split[f'{name}_s']:.2g} s" for name in ("build", "lease", "evaluate"))
    return (
        f"{stage}: a step takes {split['step_s']:.2g} s on average: {parts}; the training waits "
        f"{split['wait_share']:.0%} of it; evaluators together: {evaluators}"
    )


def _table(stages: dict[str, list[Panel]]) -> Table:
    from rich.table import Table

    table = Table("stage", "figure", "points", "first", "least", "greatest", "last", box=None)
    for stage, panels in stages.items():
        for curve in (curve for panel in panels for curve in panel.curves):
            values = [value for _, value in curve.points]
            figures = (values[0], min(values), max(values), values[-1])
            table.add_row(stage, curve.name, str(len(values)), *(f"{value:.4g}" for value in figures))
    return table
