"""The directory of a training run.

RUN/recipe.toml               as resolved, with the values of the latest command
RUN/archive.sqlite            every verdict, unless the recipe names another database
RUN/data/                     the examples of stage 1, where they were collected for the run
RUN/data.json                 where they are from, and what they were compared with
RUN/collected-<digest>/       the log of that collection, by which it goes on
RUN/unjudged/                 variants that techniques have written for stage 1 and nobody judges
RUN/tokenizer-<sizes>/        trained on both, where the recipe names no policy to begin from
RUN/lessons/                  what stage 1 reads, as tokens of the policy that it begins with
RUN/start/                    the policy of random weights, where the recipe names no other
RUN/lock                      held by the command that trains
RUN/<stage>/checkpoint-N      weights, optimiser, random states: what a stage goes on from
RUN/<stage>/final             model, tokenizer and card, as `save_pretrained` writes them
RUN/<stage>/metrics.jsonl     one JSON object a line
RUN/<stage>/samples.jsonl     what the policy wrote
RUN/held-out/                 what `train evaluate` asked, got and found
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from cuda_l1.archive.faults import file_faults
from cuda_l1.archive.json_lines import append_line, read_lines
from cuda_l1.archive.runs import described, differing
from cuda_l1.errors import UsageError
from cuda_l1.training.recipe import Recipe, as_toml, changeable_until, decisive, load_recipe
from cuda_l1.training.whole import is_whole
from cuda_l1.types import digest

_CHECKPOINT = re.compile(r"checkpoint-(\d+)")
LOCK = "lock"


def partial_of(file: Path) -> Path:
    """What stands in the place of a file while that is being written; all that is left of it after a kill."""
    return file.with_suffix(".partial")


def write_whole(file: Path, text: str) -> None:
    """Writes a file whole or not at all. Raises as `file_faults` says."""
    with file_faults(file):
        partial_of(file).write_text(text, "utf-8")
        partial_of(file).replace(file)


class StageDirectory:
    """One stage's files. Errors of the disk: InfrastructureError when it is full, else ArchiveError."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def final(self) -> Path:
        """Where the finished model is; it exists once the stage is done."""
        return self.path / "final"

    @property
    def is_done(self) -> bool:
        """Whether the stage is finished."""
        return (self.final / "config.json").exists() or (self.final / "adapter_config.json").exists()

    def checkpoint(self) -> Path | None:
        """The latest one that is whole."""
        found = ((int(name[1]), path) for path in self._folders() if (name := _CHECKPOINT.fullmatch(path.name)))
        whole = [(number, path) for number, path in found if is_whole(path)]
        return max(whole)[1] if whole else None

    def append(self, file: str, row: dict[str, Any]) -> None:
        """One more line of `metrics` or `samples`; a line that a kill has torn is ended first."""
        with file_faults(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        append_line(self.path / f"{file}.jsonl", row)

    def rows(self, file: str) -> Iterator[dict[str, Any]]:
        """The lines of `metrics` or `samples`, oldest first, without torn ones and what is no line of ours."""
        return read_lines(self.path / f"{file}.jsonl")

    def rewind(self, file: str, checkpoint: Path | None) -> None:
        """Takes the lines of steps behind a checkpoint (None: all) out of `metrics` or `samples`: they come again."""
        self.keep(file, step_of(checkpoint) if checkpoint else -1)

    def keep(self, file: str, step: int) -> None:
        """Takes the lines of later steps out."""
        path = self.path / f"{file}.jsonl"
        if not path.exists():
            return
        kept = [row for row in self.rows(file) if row["step"] <= step]
        write_whole(path, "".join(json.dumps(row) + "\n" for row in kept))

    def _folders(self) -> list[Path]:
        return [path for path in self.path.iterdir() if path.is_dir()] if self.path.is_dir() else []


class RunDirectory:
    """A training run's folder and its recipe."""

    def __init__(self, path: Path, recipe: Recipe) -> None:
        self.path = path
        self.recipe = recipe

    @property
    def name(self) -> str:
        """What records of the archive carry as `run`."""
        return f"{self.path.name}-{self.recipe.digest[:8]}"

    @property
    def archive(self) -> str:
        """Path or address of the run's database."""
        return self.recipe.run.archive or str(self.path / "archive.sqlite")

    @property
    def data(self) -> Path:
        """The examples that were collected for the run."""
        return self.path / "data"

    @property
    def unjudged(self) -> Path:
        """What techniques have written for the run and nobody has judged."""
        return self.path / "unjudged"

    def unjudged_file(self, spec: str) -> Path:
        """That of one of `[data] unjudged`."""
        return self.unjudged / "data" / f"{digest(spec)[:16]}.parquet"

    @property
    def lessons(self) -> Path:
        """What stage 1 reads, as tokens."""
        return self.path / "lessons"

    @property
    def tokenizer(self) -> Path:
        """That of a policy of random weights, of the recipe's sizes."""
        sizes = self.recipe.model
        return self.path / f"tokenizer-{sizes.vocabulary}-{sizes.context}"

    @property
    def start(self) -> Path:
        """The policy of random weights, where the recipe names no other."""
        return self.path / "start"

    def stage(self, name: str) -> StageDirectory:
        """The files of a stage."""
        return StageDirectory(self.path / name)

    @classmethod
    def create(cls, recipe: Recipe, *, resume: bool, stages: Sequence[str] = ()) -> Self:
        """The run of a recipe: a new folder, or the one that is there; with `resume` also where one of `stages`, which
        are about to run, was begun.

        What follows from nothing, and values of a stage that was not begun, may be others than before. Raises
        UsageError: one of them was begun and `resume` is off; the run was begun with other values, which are named; the
        folder holds something else; or `resume` is on and there is no run.
        """
        cls.check(recipe, resume=resume, stages=stages)
        path = Path(recipe.run_dir)
        made = cls(path, recipe)
        with file_faults(path):
            path.mkdir(parents=True, exist_ok=True)
        # Another command may be about to train by the one that is there: `alone` tells.
        if not (path / "recipe.toml").exists():
            made._write_recipe()
        return made

    @staticmethod
    def check(recipe: Recipe, *, resume: bool, stages: Sequence[str] = ()) -> None:
        """Raises what `create` does, which makes nothing then."""
        path = Path(recipe.run_dir)
        file = path / "recipe.toml"
        if file.exists() and (resume or not _is_untouched(path)):
            _check_again(path, recipe, resume=resume, stages=stages)
        elif resume:
            raise UsageError(f"{path}: no run there to resume; leave --resume out, or check run_dir")
        elif not file.exists() and path.exists() and (not path.is_dir() or set(path.iterdir()) - {partial_of(file)}):
            raise UsageError(f"{path}: holds something else; name a new folder, --set run_dir=DIR")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """No other command works in the folder as long as the block lasts, and the recipe there is this one. Raises
        UsageError where one does."""
        with file_faults(self.path):
            file = os.open(self.path / LOCK, os.O_CREAT | os.O_RDWR, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._write_recipe()
            yield
        except BlockingIOError as error:
            raise UsageError(
                f"{self.path}: another command works there; wait for it, or give another run_dir"
            ) from error
        finally:
            os.close(file)  # which frees it, as the end of the process does

    def _write_recipe(self) -> None:
        write_whole(self.path / "recipe.toml", as_toml(self.recipe))

    @classmethod
    def open(cls, path: Path) -> Self:
        """A run that exists. Raises UsageError."""
        if not (path / "recipe.toml").exists():
            raise UsageError(f"{path}: no training run there (no recipe.toml); check the path")
        return cls(path, load_recipe(path / "recipe.toml"))


def _check_again(path: Path, recipe: Recipe, *, resume: bool, stages: Sequence[str]) -> None:
    begun = [name for name in stages if (path / name).exists()]
    if begun and not resume:
        raise UsageError(
            f"{path}: {begun[0]} was begun there; give --resume to go on, or --set run_dir=DIR for another run"
        )
    stored = load_recipe(path / "recipe.toml")
    differences = differing(decisive(stored), decisive(recipe))
    if fixed := {name: both for name, both in differences.items() if not _may_change(path, name)}:
        raise UsageError(
            f"{path}: begun with other values ({described(fixed)}); give the same ones, or another run_dir"
        )


def step_of(checkpoint: Path) -> int:
    """The update that a checkpoint was written after."""
    return int(checkpoint.name.rpartition("-")[2])


def _may_change(path: Path, name: str) -> bool:
    """Whether nothing in a run's folder follows yet from the key of this name."""
    folders = changeable_until(name)
    return bool(folders) and not any((path / folder).exists() for folder in folders)


def _is_untouched(path: Path) -> bool:
    """Whether nothing was done yet in a run: its recipe may still be changed."""
    return all(each.name in ("recipe.toml", LOCK) or each.name.startswith("archive.sqlite") for each in path.iterdir())
