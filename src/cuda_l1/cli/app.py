"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

import cuda_l1
from cuda_l1.cli.ablate import ablate
from cuda_l1.cli.archive import archive_app
from cuda_l1.cli.bench import bench
from cuda_l1.cli.collect import collect
from cuda_l1.cli.doctor import doctor
from cuda_l1.cli.evaluate import evaluate
from cuda_l1.cli.optimize import optimize
from cuda_l1.cli.options import BareShapes, Commands
from cuda_l1.cli.prompt import prompt
from cuda_l1.cli.replay import replay
from cuda_l1.cli.report import report
from cuda_l1.cli.tasks import tasks_app
from cuda_l1.cli.train import train_app

app = typer.Typer(
    name="cuda-l1",
    cls=Commands,
    help="Make PyTorch modules faster, and prove it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(optimize)
app.command(cls=BareShapes)(evaluate)
app.command()(replay)
app.command()(bench)
app.command()(ablate)
app.command()(prompt)
app.command()(collect)
app.add_typer(train_app, name="train")
app.add_typer(tasks_app, name="tasks")
app.add_typer(archive_app, name="archive")
app.command()(report)
app.command()(doctor)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cuda-l1 {cuda_l1.__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Make PyTorch modules faster, and prove it."""
