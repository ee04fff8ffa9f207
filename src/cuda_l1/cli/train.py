"""`cuda-l1 train`: the stages of training, by recipe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from cuda_l1.cli import options as o
from cuda_l1.cli.boundary import command
from cuda_l1.cli.output import Output
from cuda_l1.cli.train_display import TrainDisplay
from cuda_l1.cli.train_report import train_evaluate, train_report
from cuda_l1.training.processes import is_main
from cuda_l1.training.stages import STAGES, Event

KEPT = "checkpoints and verdicts are kept, and the same command with --resume goes on"
RecipeFile = Annotated[Path, typer.Argument(metavar="RECIPE.toml", help="What is trained, on what, and how.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="In place of the recipe's value; may be given again."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with a run that was interrupted.")]

train_app = typer.Typer(
    help="Train a policy that writes faster modules.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _command(names: Sequence[str]) -> Callable[..., None]:
    """Runs these stages; without any it makes what stage 1 learns from."""

    @command(kept=KEPT)
    def train_stages(
        recipe: RecipeFile, overrides: Overrides = None, resume: Resume = False, json: o.Json = False
    ) -> None:
        from cuda_l1.api.training import prepare_data, train
        from cuda_l1.training.recipe import load_recipe

        output = Output(as_json=json)
        with TrainDisplay() as display:

            def on_event(event: Event) -> None:
                display.on_event(event)
                output.record("event", {"stage": event.stage, "text": event.text, **event.figures})

            read = load_recipe(recipe, overrides or ())
            if names:
                written = train(names, read, resume=resume, on_event=on_event)
            else:
                written = prepare_data(read, resume=resume, on_event=on_event)
        if is_main():
            output.show(f"written: {written}")
            output.summary(**{"checkpoint" if names else "run_dir": str(written)}, stages=list(names))

    return train_stages


def _add(name: str, help_line: str, names: Sequence[str]) -> None:
    example = f"Example: cuda-l1 train {name} recipes/smoke-cpu.toml --set run_dir=runs/smoke"
    train_app.command(name, help=f"{help_line}\n\n{example}")(_command(names))


_add("data", "What stage 1 learns from, and no more: on a machine without a GPU, too.", [])
for _name, _stage in STAGES.items():
    _add(_name, _stage.help, [_name])
_add("all", "All stages, one after the other: " + ", ".join(STAGES) + ".", list(STAGES))
train_app.command("report")(train_report)
train_app.command("evaluate")(train_evaluate)
