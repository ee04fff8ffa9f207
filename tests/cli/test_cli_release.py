"""`archive export --release`: what it says of what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_fakes import timing

from cuda_l1.cli.output import Output
from cuda_l1.cli.release import export_release
from cuda_l1.config import FINAL
from cuda_l1.types import Candidate, Correctness, Environment, Evaluation, Outcome, Record, Task, Trial

PLACE = Environment(device="cpu", device_name="Test CPU", lane="0", rung="R1", torch="2.9.0")


def test_a_task_that_was_scaled_down_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = Task(suite="kernelbench", name="level1/19_ReLU[batch_size=16]", level=1, source="class Model: ...")
    candidate = Candidate(task_sha=task.sha, task_id=task.id, source="class ModelNew: ...")
    trial = Trial(kind="base", error=1e-7, reference_error=1e-7, bound=1e-6, passed_class="fp32")
    evaluation = Evaluation(
        candidate_id=candidate.id,
        outcome=Outcome.ACCEPTED,
        correctness=Correctness(trials=(trial,), precision_class="fp32", task_class="fp32"),
        timings=(timing(2.0, FINAL, "eager"),),
        environment=PLACE,
        protocol="final",
    )
    record = Record(run="r", sequence=1, candidate=candidate, evaluation=evaluation)
    path = tmp_path / "ours.jsonl"
    found = [(task, {"Test CPU": record})]
    assert export_release(found, path, device_name=None, clock=None, output=Output(as_json=True)) == 0
    said = capsys.readouterr()
    assert "level1/19: is of other sizes than the suite's problem: batch_size=16" in said.err
    assert json.loads(said.out)["other_sizes"] == [task.id]
