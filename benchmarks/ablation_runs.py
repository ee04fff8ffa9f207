"""The runs of the policy ablation: folders, recipes, and what makes each of them, by `cuda-l1 train`."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path

import ablation_templates as templates
from ablation_rows import Row, Run, common, own
from ablation_table import Reply
from cuda_l1.api.training import resolved
from cuda_l1.api.training_data import prepare
from cuda_l1.archive import Archive
from cuda_l1.errors import CudaL1Error, UsageError
from cuda_l1.training.recipe import Recipe, load_recipe
from cuda_l1.training.run_directory import RunDirectory, StageDirectory
from cuda_l1.training.task_sets import TaskSets, load_task_sets
from cuda_l1.types import Task
from provenance import say

HELD_OUT, RESULT = "held-out", "result.json"
PIECES = ("data", "data.json")
"""Of a run's folder: what was collected for it."""


class Failed(CudaL1Error):
    """A run ended without what it was to make."""


class Ablation:
    """A base recipe and a folder for all of its runs."""

    def __init__(self, base: Path, overrides: Sequence[str], out: Path) -> None:
        """Raises UsageError, where the base is no recipe that a table can be made of."""
        self.path, self.out, self._given = base, out, list(overrides)
        self.base = load_recipe(base, overrides)
        if self.base.evaluation.denominator != "reference":
            raise UsageError("the table is in speed-ups over the reference: --set evaluation.denominator=reference")
        if self.base.run.archive is not None:
            raise UsageError("run.archive: rows would show each other's variants; leave it out, they share a table")
        if not self.held_out:
            raise UsageError("none of the recipe's tasks is held out; --set 'data.tasks=[...]' with more of them")

    # ── Recipes and folders ───────────────────────────────────────────────────────────────────────

    def folder(self, run: Run) -> Path:
        """Of a run."""
        return self.out / "runs" / run.name

    def shared(self, seed: int) -> Path:
        """Of the stages that the rows of a seed share."""
        return self.out / "shared" / f"seed-{seed}"

    def values(self, folder: Path, seed: int, row: Row | None = None) -> list[str]:
        """All that `--set` says of a run."""
        return [*self._given, *common(self.base, self.out, seed, folder), *(own(row, self.base) if row else [])]

    def recipe(self, folder: Path, seed: int, row: Row | None = None) -> Recipe:
        """Of a run, with the devices of this machine."""
        return resolved(load_recipe(self.path, self.values(folder, seed, row)))

    def opened(self, folder: Path, seed: int, row: Row | None = None) -> RunDirectory:
        """The run in a folder, begun where there is none. Raises UsageError where it was begun with other values."""
        return RunDirectory.create(self.recipe(folder, seed, row), resume=(folder / "recipe.toml").exists())

    def is_done(self, run: Run) -> bool:
        """Whether it was evaluated."""
        return (self.folder(run) / HELD_OUT / RESULT).exists()

    # ── Work ──────────────────────────────────────────────────────────────────────────────────────

    def collect(self) -> RunDirectory:
        """The variants that all seeds begin with, and their verdicts in the table."""
        with claimed(self.out, "data"):
            run = self.opened(self.out / "shared" / "data", 0)
            if not (run.path / "data.json").exists():
                with Archive.open(run.archive) as archive, Archive.open(self.out / "table.sqlite") as table:
                    prepare(run, archive, lambda event: say(event.text))
                    table.merge(archive)
        return run

    def begin(self, seed: int, stages: Sequence[str]) -> None:
        """Trains what the rows of a seed share. Raises Failed."""
        folder = self.shared(seed)
        with claimed(self.out, folder.name):
            if all(StageDirectory(folder / stage).is_done for stage in stages):
                return
            data = self.collect()
            run = self.opened(folder, seed)
            hand_over(data, run, PIECES)
            for stage in stages:
                self._train(stage, folder, self.values(folder, seed))

    def do(self, run: Run) -> None:
        """Trains and evaluates a run, or goes on with it. Raises Failed."""
        folder = self.folder(run)
        made = self.opened(folder, run.seed, run.row)
        if run.row.templates:
            self._without_learning(run, made)
            return
        self.begin(run.seed, run.row.begins_with)
        data, seed = self.collect(), RunDirectory.open(self.shared(run.seed))
        hand_over(seed if "self" in run.row.begins_with else data, made, PIECES)
        for stage in run.row.begins_with:
            copied(seed.stage(stage).final, made.stage(stage).final)
        for stage in run.row.learns:
            self._train(stage, folder, self.values(folder, run.seed, run.row))
        self._command(folder.name, ["evaluate", str(folder)])

    def _train(self, stage: str, folder: Path, values: Sequence[str]) -> None:
        if not StageDirectory(folder / stage).is_done:
            sets = [part for value in values for part in ("--set", value)]
            self._command(folder.name, [stage, str(self.path), *sets, "--resume"])

    def _command(self, name: str, arguments: Sequence[str]) -> None:
        """`cuda-l1 train ...` in a process of its own; what it says goes to a log."""
        log = self.out / "logs" / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        say(f"{name}: train {arguments[0]} (log: {log})")
        with log.open("a") as out:
            command = [sys.executable, "-m", "cuda_l1.cli", "train", *arguments]
            code = subprocess.run(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL).returncode
        if code:
            last = log.read_text(errors="replace").strip().rpartition("\n")[2]
            how = f"was killed by signal {-code}" if code < 0 else f"ended with {code}: {last}"
            raise Failed(f"train {arguments[0]} {how}; {log} has more")

    def _without_learning(self, run: Run, made: RunDirectory) -> None:
        recipe, stage = made.recipe, StageDirectory(made.path / HELD_OUT)
        with templates.judging(made, partial(_told, run.name)) as judge:
            found = templates.answered(run.row.templates == "constant", recipe, self.training, self.held_out, judge)
        (stage.path / "samples.jsonl").unlink(missing_ok=True)
        for one in found:
            stage.append("samples", one._asdict())
        (stage.path / RESULT).write_text(json.dumps({"replies": len(found)}) + "\n")

    # ── Tasks and what came of them ───────────────────────────────────────────────────────────────

    @cached_property
    def _tasks(self) -> TaskSets:
        return load_task_sets(self.base.data, resolved(self.base).evaluation.kind)

    @property
    def held_out(self) -> list[Task]:
        """The tasks that `train evaluate` asks about."""
        return sorted(self._tasks.held_out, key=lambda task: task.sha)[: self.base.evaluation.held_out_tasks]

    @property
    def training(self) -> list[Task]:
        """As many training tasks."""
        return sorted(self._tasks.train, key=lambda task: task.sha)[: self.base.evaluation.held_out_tasks]

    def baselines(self) -> dict[str, float]:
        """The speed-up of the best baseline of each held-out task, measured once."""
        path = self.out / "baselines.json"
        with claimed(self.out, "baselines"):
            if not path.exists():
                run = self.opened(self.out / "shared" / "baselines", 0)
                with templates.judging(run, partial(_told, "baselines")) as judge:
                    found = templates.best_baselines(self.held_out, judge, run.recipe.evaluation)
                path.write_text(json.dumps(found) + "\n")
        measured: dict[str, float] = json.loads(path.read_text())
        return measured

    def replies(self, run: Run) -> list[Reply]:
        """To the held-out tasks."""
        rows = StageDirectory(self.folder(run) / HELD_OUT).rows("samples")
        return [Reply(row["task"], row["right"], row["reward"]) for row in rows]

    def trained_on(self, run: Run) -> int:
        """Replies of the policy in stages 2 and 3 that a verdict was wanted on; those of a round that a killed run has
        repeated are in its log twice, and count once."""
        places = {stage: self.shared(run.seed) for stage in run.row.begins_with}
        places |= dict.fromkeys(run.row.learns, self.folder(run))
        logs = {"self": ("replies", "name"), "contrastive": ("samples", "round")}
        return sum(
            len({(row[part], row["index"]) for row in StageDirectory(places[stage] / stage).rows(log)})
            for stage, (log, part) in logs.items()
            if stage in places
        )


def hand_over(source: RunDirectory, target: RunDirectory, pieces: Sequence[str]) -> None:
    """What was collected, and all verdicts of another run; done again, it adds what is missing."""
    with Archive.open(target.archive) as archive, Archive.open(source.archive) as other:
        archive.merge(other)
    for name in pieces:
        copied(source.path / name, target.path / name)


def copied(source: Path, target: Path) -> None:
    """A file or folder, there whole or not at all; its files are one with the source's, since nobody changes them."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    partial_ = target.with_name(f"{target.name}.partial")
    if source.is_dir():
        shutil.rmtree(partial_, ignore_errors=True)
        shutil.copytree(source, partial_, copy_function=os.link)
    else:
        shutil.copyfile(source, partial_)
    partial_.replace(target)


@contextmanager
def claimed(out: Path, name: str, *, waits: bool = True) -> Iterator[bool]:
    """Alone at something of this folder; False where another process is at it and `waits` is off."""
    path = out / "locks" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


def _told(name: str, text: str) -> None:
    say(f"{name}: {text}")
