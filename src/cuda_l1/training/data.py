"""The rows that a run learns from, and what is known of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import ValidationError

from cuda_l1.errors import UsageError
from cuda_l1.training.examples import Row, read_rows
from cuda_l1.training.recipe import Recipe
from cuda_l1.training.run_directory import RunDirectory, write_whole
from cuda_l1.training.task_sets import splits_of
from cuda_l1.types import Frozen
from cuda_l1.validation import first_problem


class DataFacts(Frozen):
    """What a model card says of the data; `RUN/data.json`."""

    sources: tuple[str, ...]
    """Suites and data sets, without the folders of the machine."""
    tasks: int
    """Of the suites and the data sets, that training may use: to learn from or to validate with."""
    left_out: int
    """Tasks of evaluation suites, and those that are held out."""
    unjudged: int = 0
    """Variants that techniques wrote and nobody judged."""
    unjudged_tasks: int = 0
    unjudged_sources: tuple[str, ...] = ()
    compared: tuple[str, ...]
    """The evaluation suites that all tasks and rows were compared with."""
    overlapping: tuple[str, ...] = ()
    """Tasks of evaluation suites that are trained on since the recipe allows it."""


def write_facts(run: RunDirectory, facts: DataFacts) -> None:
    """Keeps them with the run."""
    write_whole(run.path / "data.json", facts.model_dump_json(indent=2) + "\n")


def read_facts(run: RunDirectory) -> DataFacts | None:
    """Those of the run; None where no data was prepared for it. Raises UsageError for a file that is damaged."""
    path = run.path / "data.json"
    if not path.exists():
        return None
    try:
        return DataFacts.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise UsageError(
            f"{path}: damaged ({first_problem(error)}); delete it, and --resume writes it anew from what was collected"
        ) from error


def rows_of(recipe: Recipe, run: RunDirectory) -> list[Row]:
    """The rows of the recipe's data sets and of what was collected for the run, each variant once, in the splits that
    their tasks have in the run: none is of a task that it holds out, whatever the data set says.

    Raises UsageError where there is none.
    """
    folders = [Path(folder) for folder in recipe.data.examples]
    if run.data.is_dir():
        folders.append(run.data)
    rows = list({row.candidate_id: row for folder in folders for row in read_rows(folder)}.values())
    if not rows:
        raise UsageError("there is no right variant to learn from; name tasks or examples in [data]")
    split_of = splits_of(recipe)
    found = [row._replace(split=split_of(row.task)) for row in rows]
    kept = [row for row in found if row.split != "held-out"]
    if not kept:
        raise UsageError(f"all {len(rows)} right variants are of held-out tasks; name more tasks or examples in [data]")
    return kept


def unjudged_of(run: RunDirectory) -> list[Row]:
    """Variants that techniques wrote for the run and nobody judged, each once, all of training tasks."""
    if not run.recipe.data.unjudged:
        return []
    return list({row.candidate_id: row for row in read_rows(run.unjudged, are_judged=False)}.values())


def split(rows: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    """(those to train on, those to validate with)."""
    train: list[Row] = []
    validation: list[Row] = []
    for row in rows:
        (train if row.split == "train" else validation).append(row)
    return train, validation


def counted(rows: Sequence[Row], name: str) -> str:
    """How many rows there are of each value of a column, as one line."""
    return ", ".join(f"{value} {count}" for value, count in Counter(getattr(row, name) for row in rows).most_common())
