"""Processes that train together: one judges and writes, all get the same, and all end for one reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs transformers and trl: pip install 'cuda-l1[train]'")

import parts
import ranks
import torch
import trl
from judge_fakes import TASKS, FakeEvaluator
from killing import Accounts, Clock, Moment
from training_fakes import row, write_rows

from cuda_l1.archive import Archive
from cuda_l1.errors import ArchiveError, UsageError
from cuda_l1.training import contrastive
from cuda_l1.training.judging import Judging
from cuda_l1.training.processes import ALONE, Processes
from cuda_l1.training.recipe import as_toml, recipe_from
from cuda_l1.training.run_directory import RunDirectory, StageDirectory
from shares import in_turn, slow_unless_due
from small_policy import save_policy

SECTION = {"rounds": 4, "prompts": 1, "group": 4, "batch": 2, "learning_rate": 1e-2, "checkpoint_every": 2}


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_policy(tmp_path_factory.mktemp("policy"))


# ── What they say to each other ───────────────────────────────────────────────────────────────────


def exchange(processes: Processes, folder: Path) -> object:
    def fail() -> None:
        raise UsageError("the recipe is wrong") if processes.is_main else AssertionError("another one's work")

    shared = processes.share(lambda: f"by {processes.rank}")
    first = processes.first(lambda: processes.rank)
    gathered = processes.gather([processes.rank * 10, processes.rank * 10 + 1])
    with pytest.raises(UsageError, match="the recipe is wrong"):
        processes.first(fail)
    return shared, first, gathered, processes.own(gathered)


def test_the_main_process_works_and_all_have_what_came_of_it(tmp_path: Path) -> None:
    assert ranks.run(exchange, tmp_path) == [
        "('by 0', 0, [0, 1, 10, 11], [0, 1])",
        "('by 0', None, [0, 1, 10, 11], [10, 11])",
    ]
    assert (ALONE.share(lambda: 1), ALONE.first(lambda: 2), ALONE.gather([3]), ALONE.own([4])) == (1, 2, [3], [4])


def hang(processes: Processes, folder: Path) -> object:
    if not processes.is_main:
        time.sleep(600)
    return processes.gather([1])


def test_one_that_does_not_answer_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    main, other = ranks.run(hang, tmp_path, collective_s=1.0, grace_s=0.0)
    assert main.startswith("InfrastructureError: another process of this training is gone or does not answer")
    assert other == "hangs"


# ── Stage 3 in two of them ────────────────────────────────────────────────────────────────────────


def staged(processes: Processes, run: RunDirectory, policy: Path, evaluator: FakeEvaluator) -> str:
    """Stage 3 as one of its processes: the main one has archive and judge."""
    with Archive.open(run.path / "archive.sqlite") if processes.is_main else nullcontext() as archive:
        judge = Judging([evaluator], archive=archive, run="run", within_s=60.0) if archive else None
        told = {"archive": archive, "judge": judge, "on_event": lambda event: None, "processes": processes}
        return contrastive.train(run, TASKS, start=policy, **told).name


def train(
    processes: Processes, folder: Path, policy: Path, last: Moment | None, dying: int, in_parts: bool = False
) -> object:
    """Stage 3 with a lag, perhaps with weights in parts; `dying` dies at its moment."""
    if in_parts:
        parts.split(contrastive)
    clock = Clock(folder, last if dying == processes.rank else None)
    clock.watch()
    values = {"contrastive": {**SECTION, "min_pass_rate": 0.0, "lag": 1}, "generation": {"max_new_tokens": 3}}
    recipe = recipe_from({"run_dir": str(folder), "run": {"device": "cpu"}, **values}, "a test")
    run = RunDirectory(folder, recipe)
    return staged(processes, run, policy, Accounts(folder, clock))


def locked(processes: Processes, folder: Path, policy: Path) -> object:
    class Locked(FakeEvaluator):
        def evaluate(self, *asked: Any, **more: Any) -> Any:
            raise ArchiveError("the archive is locked")

    values = {"contrastive": {**SECTION, "min_pass_rate": 0.0}, "generation": {"max_new_tokens": 3}}
    recipe = recipe_from({"run_dir": str(folder), "run": {"device": "cpu"}, **values}, "a test")
    return staged(processes, RunDirectory(folder, recipe), policy, Locked())


def test_a_judge_that_fails_ends_all_of_them_with_its_reason(tmp_path: Path, policy: Path) -> None:
    assert ranks.run(locked, tmp_path, policy) == ["ArchiveError: the archive is locked"] * 2


@pytest.mark.parametrize(
    "in_parts",
    [
        pytest.param(False, id="whole", marks=slow_unless_due(0, 2, in_turn(2))),
        pytest.param(True, id="in-parts", marks=slow_unless_due(1, 2, in_turn(2))),
    ],
)
def test_one_that_dies_ends_the_other_and_the_run_goes_on_to_the_same_weights(
    tmp_path: Path, policy: Path, in_parts: bool
) -> None:
    gone = "InfrastructureError: another process of this training is gone"
    assert ranks.run(train, tmp_path / "whole", policy, None, 0, in_parts) == ["final", "final"]
    other, killed = ranks.run(train, tmp_path / "broken", policy, Moment("pass", 3), 1, in_parts)
    assert killed == "killed" and other.startswith(gone)
    killed, other = ranks.run(train, tmp_path / "broken", policy, Moment("checkpoint", 0), 0, in_parts)
    assert killed == "killed" and other.startswith(gone)
    with pytest.raises(UsageError, match="written by 2 processes, and 1 are training now"):
        train(ALONE, tmp_path / "broken", policy, None, 0)
    assert ranks.run(train, tmp_path / "broken", policy, None, 0, in_parts) == ["final", "final"]
    stages = [StageDirectory(tmp_path / name / "contrastive") for name in ("whole", "broken")]
    weights = [(stage.final / "model.safetensors").read_bytes() for stage in stages]
    assert weights[0] == weights[1]
    for stage in stages:
        assert [line["step"] for line in stage.rows("metrics")] == [1, 2, 3, 4]  # one process writes
        assert all(len(line["groups"]) == 1 for line in stage.rows("prompts"))  # a group on two processes


# ── The command under torchrun ────────────────────────────────────────────────────────────────────


@pytest.mark.e2e
@pytest.mark.parametrize(
    "in_parts",
    [
        pytest.param("", id="whole", marks=slow_unless_due(1, 2, in_turn(2))),
        pytest.param("1", id="in-parts", marks=slow_unless_due(0, 2, in_turn(2))),
    ],
)
def test_all_stages_run_under_torchrun(tmp_path: Path, policy: Path, in_parts: str) -> None:
    launcher = ("torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(ranks.free_port()))
    run_all_stages(tmp_path, policy, launcher, device="cpu", environment={"IN_PARTS": in_parts})


@pytest.mark.e2e
@pytest.mark.gpu
def test_all_stages_run_in_parts_on_gpus(tmp_path: Path, policy: Path) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs, one for each process: run on a machine with as many")
    settings = Path(trl.__file__).parent / "accelerate_configs" / "fsdp2.yaml"
    launcher = ("accelerate.commands.launch", "--config_file", str(settings), "--num_processes", "2")
    launcher += ("--main_process_port", str(ranks.free_port()))
    run_all_stages(tmp_path, policy, launcher, device="cuda")


def run_all_stages(
    tmp_path: Path, policy: Path, launcher: Sequence[str], *, device: str, environment: Mapping[str, str] = {}
) -> None:
    """`train all` in two processes that `python -m LAUNCHER` starts; stage 1 is evaluated after each step."""
    rows = [row(n, task=f"t{n // 2}", speedup=1 + n / 4) for n in range(4)]
    data = write_rows(tmp_path / "rows", [*rows, row(4, task="v", split="validation")])
    values = {
        "run_dir": str(tmp_path / "run"),
        "model": {"path": str(policy)},
        "data": {"examples": [str(data)]},
        "sft": {"steps": 3, "batch": 2, "max_length": 1024, "packing": False, "learning_rate": 1e-6,
                "checkpoint_every": 1},
        "self_supervised": {"rounds": 1, "samples": 6, "tasks": 2, "batch": 2, "learning_rate": 1e-3},
        "contrastive": {**SECTION, "rounds": 2, "min_pass_rate": 0.0},
        "generation": {"max_new_tokens": 3},
        "evaluation": {"device": "cpu"},
        "run": {"device": device, "samples": 0},
    }  # fmt: skip
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(as_toml(recipe_from(values, "a test")))
    script = Path(__file__).with_name("torchrun_all.py")
    command = [sys.executable, "-m", *launcher, str(script), "train", "all", str(recipe), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr[-4000:]
    summaries = [json.loads(line) for line in done.stdout.splitlines() if '"kind": "summary"' in line]
    assert [each["checkpoint"] for each in summaries] == [str(tmp_path / "run" / "contrastive" / "final")]
    lines = [list(StageDirectory(tmp_path / "run" / name).rows("metrics")) for name in ("sft", "self", "contrastive")]
    assert [line["step"] for line in lines[0] if "loss" in line] == [1, 2, 3]
    assert [line["step"] for line in lines[0] if "validation_loss" in line] == [1, 2, 3]
    assert [line["round"] for line in lines[1]] == [0, 1]
    assert [line["step"] for line in lines[2]] == [1, 2]
