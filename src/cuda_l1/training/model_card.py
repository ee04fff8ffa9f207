"""The card beside a policy's weights: what it was trained on and how, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from cuda_l1 import __version__
from cuda_l1.archive.faults import file_faults
from cuda_l1.config import PromptFormat
from cuda_l1.proposers.policy.checkpoint import write_format
from cuda_l1.texts import many
from cuda_l1.training.data import counted, read_facts, rows_of
from cuda_l1.training.run_directory import RunDirectory

PACKAGES = ("torch", "transformers", "trl")
HELD_OUT = "## Held-out tasks"
ON_THE_CARD = (
    "tasks", "replies", "unjudged_tasks", "unjudged_replies", "pass_rate", "tasks_solved", "tasks_faster",
    "speedup_best_of_task", "speedup_right", "speedup_best", "invalid_replies", "suspected", "faults",
)  # fmt: skip
"""Of a held-out evaluation."""


def describe(folder: Path, run: RunDirectory, stage: str, *, start: Path, figures: Mapping[str, float]) -> None:
    """Writes the card and the form of the prompts into a folder of weights. Raises as `rows_of`."""
    recipe = run.recipe
    asked = PromptFormat(
        prompt=recipe.prompt.settings,
        sampler=recipe.contrastive.sampler,
        max_new_tokens=recipe.generation.max_new_tokens,
        temperature=recipe.generation.temperature,
        top_p=recipe.generation.top_p,
    )
    write_format(folder, asked)
    _write_card(folder, run, stage, start=start, figures=figures)


def _write_card(folder: Path, run: RunDirectory, stage: str, *, start: Path, figures: Mapping[str, float]) -> None:
    """Writes `README.md` into a folder of weights; `figures` are the stage's results so far. Raises as `rows_of`."""
    text = files("cuda_l1.training").joinpath("model_card.md.j2").read_text("utf-8")
    template = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True).from_string(text)
    rows = rows_of(run.recipe, run)
    card = template.render(
        many=many,
        name=f"{run.name}, {stage}",
        stage=stage,
        digest=run.recipe.digest,
        start=_place(start, run),
        seed=run.recipe.run.seed,
        versions=", ".join([f"cuda-l1 {__version__}", *(f"{name} {version(name)}" for name in PACKAGES)]),
        prompt=run.recipe.prompt.kind,
        facts=read_facts(run),
        base=None if run.recipe.model.path is None else Path(run.recipe.model.path).name,
        rows={
            "total": len(rows),
            "tasks": len({row.task_sha for row in rows}),
            "by": counted(rows, "by"),
            "devices": counted(rows, "device_name"),
            "licences": counted(rows, "licence"),
        },
        figures=figures,
    )
    with file_faults(folder):
        (folder / "README.md").write_text(card, "utf-8")


def add_held_out(folder: Path, result: Mapping[str, Any]) -> None:
    """Puts the figures of `train evaluate` at the end of a policy's card, in place of those that are there."""
    card = folder / "README.md"
    if not card.is_file():
        return
    figures = {name: value for name, value in result.items() if name in ON_THE_CARD}
    lines = [f"- {name.replace('_', ' ')}: {value:.4g}" for name, value in figures.items()]
    about = f"By `cuda-l1 train evaluate`, over `{result['denominator']}`; they decided nothing:"
    text = card.read_text("utf-8").partition(HELD_OUT)[0].rstrip()
    with file_faults(folder):
        card.write_text("\n".join([text, "", HELD_OUT, about, "", *lines, ""]), "utf-8")


def _place(start: Path, run: RunDirectory) -> str:
    """A checkpoint without the folders of this machine."""
    if start == run.start:
        return "random weights, with a tokenizer trained on the data"
    return f"`{start.relative_to(run.path)}`" if start.is_relative_to(run.path) else f"`{start.name}`"
