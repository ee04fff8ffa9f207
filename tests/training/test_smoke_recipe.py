"""`recipes/smoke-cpu.toml`: all stages with a real model and the real evaluator, killed once on the way."""

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
PATIENCE_S = 1500
"""For a checkpoint, on a machine that others use."""


def command(folder: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "cuda_l1.cli", "train", "all", str(RECIPE), "--set", f"run_dir={folder}", *more]


def killed_at_a_checkpoint(folder: Path) -> None:
    """Starts the run and ends it with SIGKILL when stage 3 has its first checkpoint."""
    process = subprocess.Popen(command(folder), stderr=subprocess.PIPE, text=True, start_new_session=True)
    stage, until = StageDirectory(folder / "contrastive"), time.monotonic() + PATIENCE_S
    try:
        while stage.checkpoint() is None:
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < until, "no checkpoint"
            time.sleep(0.1)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def judged(run: RunDirectory) -> list[tuple[str, str]]:
    """Proposer and candidate of every record."""
    with Archive.open(run.archive) as archive:
        return [(record.candidate.origins[0].proposer, record.candidate.id) for record in archive.records()]


@pytest.mark.e2e
@pytest.mark.timeout(2400)
def test_loss_falls_the_archive_grows_and_what_was_killed_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    killed_at_a_checkpoint(folder)
    run = RunDirectory.open(folder)
    sft, contrastive = run.stage("sft"), run.stage("contrastive")
    losses = [each["loss"] for each in sft.rows("metrics") if "loss" in each]
    assert len(losses) == run.recipe.sft.steps and losses[-1] < losses[0] / 10
    before, checkpoint = judged(run), contrastive.checkpoint()
    assert checkpoint is not None and not contrastive.is_done
    done = subprocess.run(command(folder, "--resume"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"goes on from {checkpoint.name}" in done.stderr and contrastive.is_done
    after = judged(run)
    assert set(before) <= set(after) and len(set(after)) == len(after), "a verdict was paid for twice"
    assert any(proposer == "techniques" for proposer, _ in after)
    replies = [row for name in ("self", "contrastive") for row in run.stage(name).rows("samples")]
    wrote = {row["candidate"] for row in replies if row["candidate"]}
    assert wrote and wrote <= {candidate for _, candidate in after}, "a verdict is missing"
    assert [each["step"] for each in contrastive.rows("metrics")] == [*range(1, run.recipe.contrastive.rounds + 1)]
