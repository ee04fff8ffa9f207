"""`recipes/smoke-cpu.toml`: all stages with a real model and the real evaluator, killed once on the way."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cuda_l1.archive import Archive
from cuda_l1.proposers.policy.checkpoint import read_checkpoint
from cuda_l1.search.disturbed import is_disturbed
from cuda_l1.training.examples import read_rows
from cuda_l1.training.forms import read_shown
from cuda_l1.training.run_directory import RunDirectory, StageDirectory

pytest.importorskip("trl", reason="needs transformers and TRL")
RECIPE = Path(__file__).parents[2] / "recipes" / "smoke-cpu.toml"
PATIENCE_S = 1500
"""For a checkpoint, on a machine that others use."""
VARIANTS = 6
"""That the recipe's techniques write of its tasks."""
TRIES = 5
"""At a machine so quiet that all of them stay, and at a policy that writes something else than them."""
MOST_S = 600.0
"""For all stages together on two cores or more: many times what they take, and what CI can wait for."""


def command(folder: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "cuda_l1.cli", "train", "all", str(RECIPE), "--set", f"run_dir={folder}", *more]


def killed_at_a_checkpoint(folder: Path) -> bool:
    """Starts the run and ends it with SIGKILL when stage 3 has its first checkpoint. False: it has too few variants to
    learn from, since others on the machine disturbed their verdicts, and was ended at once."""
    process = subprocess.Popen(command(folder), stderr=subprocess.PIPE, text=True, start_new_session=True)
    stage, until = StageDirectory(folder / "contrastive"), time.monotonic() + PATIENCE_S
    is_collected = False
    try:
        while stage.checkpoint() is None:
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < until, "no checkpoint"
            time.sleep(0.1)
            if not is_collected and (folder / "data.json").exists():
                is_collected = True
                if len(read_rows(folder / "data")) < VARIANTS:
                    return False
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    return True


def judged(run: RunDirectory) -> list[tuple[str, str]]:
    """Proposer and candidate of every record, but for those that others on the machine disturbed."""
    with Archive.open(run.archive) as archive:
        records = [record for record in archive.records() if not is_disturbed(record.evaluation)]
        return [(record.candidate.origins[0].proposer, record.candidate.id) for record in records]


def stage_seconds(run: RunDirectory, began: float) -> dict[str, float]:
    """By the files that a stage writes last; of stage 3 with what the kill cost."""
    ends = {"data": run.data}  # beside it `data.json` is written again by the command that goes on
    ends |= {name: run.stage(name).final / "README.md" for name in ("sft", "self", "contrastive")}
    times = [began, *(path.stat().st_mtime for path in ends.values())]
    return {name: end - begin for name, (begin, end) in zip(ends, itertools.pairwise(times), strict=True)}


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


@pytest.mark.e2e(always=True)
@pytest.mark.timeout(2400)
def test_loss_falls_the_archive_grows_and_what_was_killed_goes_on(tmp_path: Path) -> None:
    for number in range(TRIES):
        began, folder = time.time(), tmp_path / f"run-{number}"
        if killed_at_a_checkpoint(folder) and has_gone_on(folder, began):
            return
    pytest.fail("the archive has nothing that the policy found")


def has_gone_on(folder: Path, began: float) -> bool:
    """Resumes a run that was killed. False: by chance its policy wrote nothing that the techniques had not written."""
    run = RunDirectory.open(folder)
    sft, own, contrastive = (run.stage(name) for name in ("sft", "self", "contrastive"))
    losses = [each["loss"] for each in sft.rows("metrics") if "loss" in each]
    assert len(losses) == run.recipe.sft.steps and losses[-1] < losses[0] / 10
    assert read_shown(sft) == run.recipe.contrastive.sampler.count, "stage 3 asks in a form that was not learned"
    checkpoint, first = contrastive.checkpoint(), next(row for row in contrastive.rows("metrics") if "reward" in row)
    assert checkpoint is not None and not contrastive.is_done

    done = subprocess.run(command(folder, "--resume"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"goes on from {checkpoint.name}" in done.stderr and contrastive.is_done
    seconds = stage_seconds(run, began)
    sys.stdout.write(", ".join(f"{name}: {value:.1f} s" for name, value in seconds.items()) + "\n")
    assert sum(seconds.values()) < MOST_S or os.cpu_count() == 1, seconds
    assert "sft: is done" in done.stderr and "self: is done" in done.stderr
    lines = list(contrastive.rows("metrics"))
    metrics = [each for each in lines if "reward" in each]
    assert [each["step"] for each in lines if "validation_score" in each] == [0, run.recipe.contrastive.rounds]
    assert [each["step"] for each in metrics] == [*range(1, run.recipe.contrastive.rounds + 1)]
    assert metrics[0] == first, "a round before the checkpoint was repeated"
    assert min(each["flat_groups"] for each in metrics) < 1.0, "no round had anything to learn from"
    assert weights(contrastive.final) != weights(own.final)
    last = contrastive.checkpoint()
    assert last is not None and read_checkpoint(last).format.prompt.kind == run.recipe.prompt.kind

    records = judged(run)
    assert len(set(records)) == len(records), "a verdict was paid for twice"
    collected = {candidate for by, candidate in records if by == "techniques"}
    written = [row for row in contrastive.rows("samples") if row["candidate"]]
    assert any(row["outcome"] == "ACCEPTED" for row in written), "no reply of stage 3 is right"
    wrote = {row["candidate"] for row in [*own.rows("samples"), *written] if row["candidate"]}
    with Archive.open(run.archive) as archive:
        assert wrote <= {record.candidate.id for record in archive.records()}, "a verdict is missing"
    return bool(wrote - collected)
