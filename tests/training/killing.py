"""Stages in processes of their own that are killed at a moment of choice, by SIGKILL, and what they had paid for.

The processes are forked from one that has loaded torch and TRL once and has run nothing.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from judge_fakes import TASKS, FakeEvaluator

from cuda_l1.archive import Archive
from cuda_l1.config import PromptFormat
from cuda_l1.training.judging import Judging
from cuda_l1.training.recipe import Recipe, recipe_from
from cuda_l1.training.run_directory import RunDirectory
from cuda_l1.training.stages import Surroundings
from cuda_l1.training.task_sets import TaskSets
from cuda_l1.types import Task

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["cuda_l1.training.contrastive", "cuda_l1.training.self_supervised"])
PATIENCE_S = 120
CHANGES = frozenset({"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir"})
VALIDATION = Task(suite="synth", name="checked", source="class Model: # checked\n    pass")


class Moment(NamedTuple):
    """The `number`-th event of a kind: a forward `pass` of the model, a `verdict` that is asked for, one that is
    `judged` and not yet recorded, a `change` of a file of the run, a `checkpoint` that is whole."""

    kind: str
    number: int


class Clock:
    """Counts what happens in this process, and kills it at its moment."""

    def __init__(self, folder: Path, last: Moment | None) -> None:
        self._folder, self._last = str(folder), last
        self._is_checkpoint_open = False
        self.seen: Counter[str] = Counter()

    def tick(self, kind: str) -> None:
        if self._last == (kind, self.seen[kind]):
            os.kill(os.getpid(), signal.SIGKILL)
        self.seen[kind] += 1

    def watch(self) -> None:
        """The model's forward passes, and the files of the run."""
        from transformers import Qwen3ForCausalLM

        forward = Qwen3ForCausalLM.forward

        def counted(*args: Any, **others: Any) -> Any:
            self.tick("pass")
            return forward(*args, **others)

        Qwen3ForCausalLM.forward = counted
        sys.addaudithook(self._hook)  # nothing takes it off again: this process is the stage's alone

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event not in CHANGES or not str(args[0]).startswith(self._folder):
            return
        if event == "open" and not (isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        if self._is_checkpoint_open:
            self._is_checkpoint_open = False
            self.tick("checkpoint")
        self._is_checkpoint_open = event == "open" and str(args[0]).endswith("trainer_state.json")
        self.tick("change")


class Accounts(FakeEvaluator):
    """Writes down what it is asked to pay for before it does."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        super().__init__()
        self._folder, self._clock = folder, clock

    def evaluate(self, task: Task, candidate: Any, **more: Any) -> Any:
        with (self._folder.parent / f"{self._folder.name}.paid").open("a") as file:
            file.write(f"{candidate.id}\n")
        self._clock.tick("verdict")
        found = super().evaluate(task, candidate, **more)
        self._clock.tick("judged")
        return found


class Run(NamedTuple):
    """A stage in a folder, which can be run in pieces."""

    folder: Path
    policy: Path
    work: Callable[[Path, Path, Accounts], None]

    def go_on(self, last: Moment | None = None) -> int:
        """Runs it in a process of its own; the process's exit code, -9 where it was killed."""
        process = FORKS.Process(target=_piece, args=(*self, last), daemon=True)
        process.start()
        process.join(PATIENCE_S)
        if process.exitcode is None:
            process.kill()
        assert process.exitcode is not None, "the stage hangs"
        return process.exitcode

    @property
    def paid(self) -> list[str]:
        """Candidates in the order in which verdicts on them were begun."""
        return (self.folder.parent / f"{self.folder.name}.paid").read_text().split()

    @property
    def judged(self) -> list[str]:
        """Candidates in the order of their records."""
        with Archive.open(self.folder / "archive.sqlite") as archive:
            return [record.candidate.id for record in archive.records()]

    @property
    def seen(self) -> Counter[str]:
        """How often each kind of event happened in the piece that came to the end."""
        lines = (self.folder.parent / f"{self.folder.name}.seen").read_text().split()
        return Counter({line.split("=")[0]: int(line.split("=")[1]) for line in lines})


def _piece(folder: Path, policy: Path, work: Callable[[Path, Path, Accounts], None], last: Moment | None) -> None:
    clock = Clock(folder, last)
    clock.watch()
    if not list(folder.glob("*/final")):
        work(folder, policy, Accounts(folder, clock))
    (folder.parent / f"{folder.name}.seen").write_text("\n".join(f"{k}={n}" for k, n in clock.seen.items()))


def _run(folder: Path, stage: str, values: dict[str, Any]) -> tuple[Recipe, RunDirectory]:
    recipe = recipe_from({"run_dir": str(folder), "run": {"device": "cpu"}, "evaluation": {"device": "cpu"}, **values},
                         "a test")  # fmt: skip
    return recipe, RunDirectory.create(recipe, resume=(folder / "recipe.toml").exists(), stages=[stage])


def contrastive(folder: Path, policy: Path, evaluator: Accounts) -> None:
    """Stage 3: four rounds, a checkpoint and a validation after every second."""
    from cuda_l1.training import contrastive

    section = {"rounds": 4, "prompts": 2, "group": 6, "batch": 6, "learning_rate": 1e-2, "checkpoint_every": 2,
               "validate_every": 2, "validation_samples": 6}  # fmt: skip
    _, run = _run(folder, "contrastive", {"contrastive": {**section, "min_pass_rate": 0.0},
                                          "generation": {"max_new_tokens": 3, "batch": 6}})  # fmt: skip
    with Archive.open(folder / "archive.sqlite") as archive:
        judge = Judging([evaluator], archive=archive, run="run", within_s=60.0)
        contrastive.train(
            run, TASKS, validation=[VALIDATION], start=policy, archive=archive, judge=judge,
            on_event=lambda event: None,
        )  # fmt: skip


def self_supervised(folder: Path, policy: Path, evaluator: Accounts) -> None:
    """Stage 2: two rounds of sampling, learning between them."""
    from cuda_l1.proposers.policy.checkpoint import write_format
    from cuda_l1.training import self_supervised

    self_supervised.load_task_sets = lambda recipe, device: TaskSets(tuple(TASKS), (VALIDATION,), (), ())
    self_supervised.describe = lambda place, *_, **__: write_format(place, PromptFormat())
    section = {"rounds": 2, "samples": 6, "tasks": 3, "batch": 4, "learning_rate": 3e-3, "epochs": 3, "patience": 9}
    recipe, run = _run(folder, "self", {"self_supervised": section, "sft": {"max_length": 1024, "exemplars": 1},
                                        "generation": {"max_new_tokens": 6, "batch": 12}})  # fmt: skip
    with Archive.open(folder / "archive.sqlite") as archive:
        around = Surroundings(archive, lambda: nullcontext([evaluator]))
        self_supervised.run(recipe, run, start=policy, surroundings=around, on_event=lambda event: None)
