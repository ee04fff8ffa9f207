"""`recipes/smoke-cpu.toml`: stage 1 with a real model and the real evaluator, killed once on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cuda_l1.archive import Archive
from cuda_l1.training.run_directory import RunDirectory, StageDirectory

pytest.importorskip("trl", reason="needs transformers and TRL")
RECIPE = Path(__file__).parents[2] / "recipes" / "smoke-cpu.toml"
PATIENCE_S = 900
"""For a checkpoint, on a machine that others use."""


def command(folder: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "cuda_l1.cli", "train", "sft", str(RECIPE), "--set", f"run_dir={folder}", *more]


def killed_at_a_checkpoint(folder: Path) -> None:
    """Starts the run and ends it with SIGKILL when stage 1 has its first checkpoint."""
    process = subprocess.Popen(command(folder), stderr=subprocess.PIPE, text=True, start_new_session=True)
    stage, until = StageDirectory(folder / "sft"), time.monotonic() + PATIENCE_S
    try:
        while stage.checkpoint() is None:
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < until, "no checkpoint"
            time.sleep(0.2)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def records(run: RunDirectory) -> int:
    with Archive.open(run.archive) as archive:
        return sum(1 for _ in archive.records())


@pytest.mark.e2e
@pytest.mark.timeout(2400)
def test_variants_are_judged_loss_falls_and_what_was_killed_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    killed_at_a_checkpoint(folder)
    run = RunDirectory.open(folder)
    stage = run.stage("sft")
    first = stage.checkpoint()
    collected = records(run)
    assert first is not None and not stage.is_done and collected > 0
    done = subprocess.run(command(folder, "--resume"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"goes on from {first.name}" in done.stderr
    losses = [each["loss"] for each in stage.rows("metrics") if "loss" in each]
    assert len(losses) == run.recipe.sft.steps and losses[-1] < losses[0] / 10
    assert stage.is_done and records(run) == collected, "a verdict was paid for twice"
