"""The lessons of stage 1, kept in its run: made once, where no GPU waits for them if `train data` does it."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np

from cuda_l1.archive.faults import file_faults
from cuda_l1.errors import UsageError
from cuda_l1.training.data import rows_of, split, unjudged_of
from cuda_l1.training.examples import Example, Row, by_task, examples_by
from cuda_l1.training.lessons import Made, Tokenized, lessons_of, tokenized, tokenizer_in
from cuda_l1.training.recipe import Recipe
from cuda_l1.training.run_directory import RunDirectory, partial_of

SETTINGS = {"exemplars", "other_names", "tellings", "answers", "max_length"}
"""Those of `[sft]` that examples are made by."""
DAMAGED = (OSError, EOFError, ValueError, KeyError, BadZipFile, zlib.error)
"""What reading a file raises that a disk has cut short."""
TRIED = 4
"""Tasks whose examples are made anew to see whether kept ones are what would be made now."""


class Lessons(NamedTuple):
    """What a run's stage 1 reads."""

    train: Made
    validation: Made
    asked: list[Example]
    """The first `[run] samples` examples, of the validation split where it has any, for people to see what is asked."""


def lessons_for(recipe: Recipe, run: RunDirectory, start: Path) -> Lessons:
    """What stage 1 reads, as tokens of the policy in `start`: what the run keeps, where that is what would be made now,
    else made and kept.

    Raises UsageError: there is nothing to learn from; InfrastructureError: the disk is full, or a process that makes
    some dies.
    """
    judged, tested = split(rows_of(recipe, run))
    rows = [*judged, *unjudged_of(run)]
    if not rows:
        raise UsageError("all rows belong to the validation split; give more tasks or examples in [data]")
    files = [run.lessons / f"{_key(each, recipe, start)}.npz" for each in (rows, tested)]
    train, validation = (_kept(file, each, recipe, start) for file, each in zip(files, (rows, tested), strict=True))
    for file in set(run.lessons.glob("*.npz")) - set(files):
        file.unlink()
    asked = (example for task in by_task(tested or rows) for example in examples_by(recipe, task))
    return Lessons(train, validation, list(islice(asked, recipe.run.samples)))


def _kept(file: Path, rows: Sequence[Row], recipe: Recipe, start: Path) -> Made:
    try:
        return _read(file)
    except DAMAGED:  # or there is none yet
        made = lessons_of(rows, recipe, start)
    with file_faults(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        with partial_of(file).open("wb") as opened:
            np.savez_compressed(
                opened,
                **{name: getattr(made.tokens, name) for name in Tokenized.__dataclass_fields__},
                shown=made.shown,
            )
        partial_of(file).replace(file)
    return made


def _read(file: Path) -> Made:
    """Raises one of `DAMAGED`, where there is none, too."""
    with np.load(file, allow_pickle=False) as found:
        fits, longest = tuple(found["fits"].tolist()), int(found["longest"])
        return Made(Tokenized(found["ids"], found["lengths"], found["given"], fits, longest), int(found["shown"]))


def _key(rows: Sequence[Row], recipe: Recipe, start: Path) -> str:
    """Changes with rows and settings, and with what some of the rows become."""
    seen = hashlib.sha256(repr((recipe.prompt, recipe.sft.model_dump(include=SETTINGS), recipe.run.seed)).encode())
    for row in rows:
        seen.update(repr(row).encode())
    some = [row for task in islice(by_task(rows), TRIED) for row in task]
    tried = tokenized(list(examples_by(recipe, some)), tokenizer_in(start), recipe.sft.max_length)
    seen.update(tried.ids.tobytes() + tried.given.tobytes())
    return seen.hexdigest()[:16]
