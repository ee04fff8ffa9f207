"""The runs of the policy ablation: folders, recipes, and what makes each of them, by `cuda-l1 train`."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path

import ablation_finals as finals
import ablation_templates as templates
from ablation_rows import ROWS, Run, common, own, searched
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

HELD_OUT, RESULT, SEARCHED = "held-out", "result.json", "searched.jsonl"
TRAIN = ("-m", "cuda_l1.cli", "train")
LEAKY = Path(__file__).with_name("leaky_training.py")
PIECES = ("data", "unjudged", "data.json")
"""Of a run's folder: what was collected and written for it."""


class Failed(CudaL1Error):
    """A run ended without what it was to make."""


class Ablation:
    """A base recipe and a folder for all of its runs."""

    def __init__(self, base: Path, overrides: Sequence[str], out: Path, policy: Path | None = None) -> None:
        """`policy`: what all seeds take for their stage 1, saved by it or by `save_pretrained`.

        Raises UsageError, where the base is no recipe that a table can be made of, or the policy is none.
        """
        self.path, self.out, self.policy, self._given = base, out, policy, list(overrides)
        if policy and not (policy / "config.json").exists():
            raise UsageError(f"--policy {policy}: no policy is there; give the folder that a stage left as `final`")
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

    def shared(self, run: Run) -> Path:
        """Of the stages that the rows of a seed share; of a row that asks in a form of its own, for itself."""
        return self.out / "shared" / (run.name if run.row.form else f"seed-{run.seed}")

    def values(self, folder: Path, seed: int, own: Sequence[str] = ()) -> list[str]:
        """All that `--set` says of a run."""
        return [*self._given, *common(self.base, self.out, seed, folder), *own]

    def recipe(self, folder: Path, seed: int, own: Sequence[str] = ()) -> Recipe:
        """Of a run, with the devices of this machine."""
        return resolved(load_recipe(self.path, self.values(folder, seed, own)))

    def opened(self, folder: Path, seed: int, own: Sequence[str] = ()) -> RunDirectory:
        """The run in a folder, begun where there is none. Raises UsageError where it was begun with other values."""
        return RunDirectory.create(self.recipe(folder, seed, own), resume=(folder / "recipe.toml").exists())

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

    def begin(self, run: Run) -> None:
        """Trains what the rows of a seed share. Raises Failed."""
        folder, stages = self.shared(run), run.row.begins_with
        with claimed(self.out, f"shared-{folder.name}"):
            if all(StageDirectory(folder / stage).is_done for stage in stages):
                return
            data = self.collect()
            begun = self.opened(folder, run.seed, run.row.form)
            hand_over(data, begun)
            if self.policy and not run.row.form:
                copied(self.policy, begun.stage("sft").final, shutil.copy2)
            for stage in stages:
                self._train(stage, folder, self.values(folder, run.seed, run.row.form))

    def do(self, run: Run) -> None:
        """Trains and evaluates a run, or goes on with it. Raises Failed."""
        folder, values = self.folder(run), own(run.row, self.base)
        made = self.opened(folder, run.seed, values)
        if run.row.techniques:
            self._without_learning(run, made)
            return
        if run.row.helps_search:
            self._help_search(run, made)
        else:
            self.begin(run)
            source = RunDirectory.open(self.shared(run)) if "self" in run.row.begins_with else self.collect()
            hand_over(source, made)
            for stage in run.row.begins_with:
                copied(RunDirectory.open(self.shared(run)).stage(stage).final, made.stage(stage).final)
            for stage in run.row.learns:
                self._train(stage, folder, self.values(folder, run.seed, values), leaky=run.row.judge == "leaky")
        self._command(folder.name, [*TRAIN, "evaluate", str(folder)])

    def _help_search(self, run: Run, made: RunDirectory) -> None:
        """What the techniques' search finds in its half is in the archive, where the policy's questions show it."""
        other = Run(ROWS[run.row.helps_search or ""], run.seed)
        with claimed(self.out, other.name):
            if not self.is_done(other):
                self.do(other)
        trained = RunDirectory.open(self.folder(other))
        hand_over_data(trained, made)
        for stage in (*other.row.begins_with, *other.row.learns):
            copied(trained.stage(stage).final, made.stage(stage).final)
        if not (made.path / HELD_OUT / SEARCHED).exists():
            with templates.judging(made, partial(_told, run.name)) as judge:
                found = templates.searched(made.recipe, self.held_out, searched(self.base), judge)
            _write_rows(made.path / HELD_OUT / SEARCHED, found)

    def _train(self, stage: str, folder: Path, values: Sequence[str], *, leaky: bool = False) -> None:
        if not StageDirectory(folder / stage).is_done:
            sets = [part for value in values for part in ("--set", value)]
            command = [str(LEAKY)] if leaky else [*TRAIN, stage]
            self._command(folder.name, [*command, str(self.path), *sets, "--resume"])

    def _command(self, name: str, arguments: Sequence[str]) -> None:
        """What Python is told, in a process of its own; what it says goes to a log."""
        log = self.out / "logs" / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        what = "train leaky" if arguments[0] == str(LEAKY) else " ".join(arguments[2:4])
        say(f"{name}: {what} (log: {log})")
        with log.open("a") as out:
            command = [sys.executable, *arguments]
            code = subprocess.run(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL).returncode
        if code:
            last = log.read_text(errors="replace").strip().rpartition("\n")[2]
            how = f"was killed by signal {-code}" if code < 0 else f"ended with {code}: {last}"
            raise Failed(f"{what} {how}; {log} has more")

    def _without_learning(self, run: Run, made: RunDirectory) -> None:
        recipe, stage = made.recipe, StageDirectory(made.path / HELD_OUT)
        with templates.judging(made, partial(_told, run.name)) as judge:
            how = run.row.techniques or ""
            found = templates.answered(how, recipe, self.training, self.held_out, judge)
        _write_rows(stage.path / "samples.jsonl", found)
        (stage.path / RESULT).write_text(json.dumps({"replies": len(found)}) + "\n")

    # ── Tasks and what came of them ───────────────────────────────────────────────────────────────

    @cached_property
    def _tasks(self) -> TaskSets:
        return load_task_sets(self.base, resolved(self.base).evaluation.kind)

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

    def finals(self, runs: Sequence[Run]) -> dict[str, float]:
        """Of the best reply to each held-out task in each run that is done, by candidate."""
        done = [run for run in runs if self.is_done(run)]
        best = [reply for run in done for reply in finals.best_of(self.replies(run))]
        archives = [RunDirectory.open(self.folder(run)).archive for run in done]
        with claimed(self.out, "finals"):
            return finals.measured(self.out, resolved(self.base), self.held_out, best, map(Path, archives))

    def replies(self, run: Run) -> list[Reply]:
        """To the held-out tasks."""
        stage = StageDirectory(self.folder(run) / HELD_OUT)
        rows = [*stage.rows("searched"), *stage.rows("samples")]
        return [Reply(row["task"], row["right"], row["reward"], row["outcome"], row["candidate"]) for row in rows]

    def trained_on(self, run: Run) -> int:
        """Replies of the policy in stages 2 and 3 that a verdict was wanted on; those of a round that a killed run has
        repeated are in its log twice, and count once."""
        if run.row.helps_search:
            return self.trained_on(Run(ROWS[run.row.helps_search], run.seed))
        places = {stage: self.shared(run) for stage in run.row.begins_with}
        places |= dict.fromkeys(run.row.learns, self.folder(run))
        logs = {"self": ("replies", "name"), "contrastive": ("samples", "round")}
        return sum(
            len({(row[part], row["index"]) for row in StageDirectory(places[stage] / stage).rows(log)})
            for stage, (log, part) in logs.items()
            if stage in places
        )


def hand_over(source: RunDirectory, target: RunDirectory) -> None:
    """What was collected, and all verdicts of another run; done again, it adds what is missing."""
    with Archive.open(target.archive) as archive, Archive.open(source.archive) as other:
        archive.merge(other)
    hand_over_data(source, target)


def hand_over_data(source: RunDirectory, target: RunDirectory) -> None:
    """What was collected and written for another run."""
    for name in PIECES:
        if (source.path / name).exists():
            copied(source.path / name, target.path / name)


def copied(source: Path, target: Path, copy: Callable[[str, str], object] = os.link) -> None:
    """A file or folder, there whole or not at all; unless `copy` says otherwise the files of a folder are one with the
    source's, since nobody changes them."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    partial_ = target.with_name(f"{target.name}.partial")
    if source.is_dir():
        shutil.rmtree(partial_, ignore_errors=True)
        shutil.copytree(source, partial_, copy_function=copy)
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


def _write_rows(path: Path, found: Sequence[templates.Judged]) -> None:
    """There whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial_ = path.with_suffix(".partial")
    partial_.write_text("".join(json.dumps(one._asdict()) + "\n" for one in found))
    partial_.replace(path)


def _told(name: str, text: str) -> None:
    say(f"{name}: {text}")
