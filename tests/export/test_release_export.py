"""Our own kernels in the release's format: read back by the reader of that format, with nothing claimed beyond it."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path

from cuda_l1.export.release import numbered, release_lines
from cuda_l1.tasks.release import read_release
from cuda_l1.types import (
    Candidate,
    Correctness,
    Environment,
    Evaluation,
    Origin,
    Outcome,
    Pair,
    Record,
    Task,
    Timing,
    Trial,
    Weights,
)

PLACE = Environment(device="cpu", device_name="Test CPU", lane="0", rung="R1", torch="2.9.0")


def task(name: str, level: int | None = 1, text: str = "class Model: ...", suite: str = "kernelbench") -> Task:
    return Task(suite=suite, name=name, level=level, source=text)


def record(of: Task, day: int = 1, best: str = "compile") -> Record:
    pair = Pair(candidate_us=(1.0,), opponent_us=(2.0,), candidate_pid=1, opponent_pid=2, log_ratio=math.log(2))
    timing = Timing(clock="call", opponent="eager", opponent_id="e", pairs=(pair,), speedup=2.0, speedup_low=1.9,
                    speedup_high=2.1, candidate_us=1.0, opponent_us=2.0)  # fmt: skip
    other = timing.model_copy(update={"opponent": best, "speedup": 1.25, "best_of": ("eager", best)})
    trial = Trial(kind="base", error=1e-7, reference_error=1e-7, bound=1e-6, passed_class="fp32")
    origin = Origin(proposer="techniques", techniques=("fusion",))
    candidate = Candidate(task_sha=of.sha, task_id=of.id, source="class ModelNew: ...", origins=(origin,))
    evaluation = Evaluation(
        candidate_id=candidate.id, outcome=Outcome.ACCEPTED, timings=(timing, other), environment=PLACE,
        correctness=Correctness(trials=(trial,), precision_class="fp32", task_class="fp32"), protocol="final",
    )  # fmt: skip
    return Record(
        run="r", sequence=1, time=datetime(2026, 1, day, tzinfo=UTC), candidate=candidate, evaluation=evaluation
    )


def test_what_is_written_reads_back_with_its_evidence(tmp_path: Path) -> None:
    tasks = [task("level1/19_ReLU"), task("level2/3_Net", 2), task("gelu", None, suite="builtin")]
    rows, left_out = numbered([(one, record(one)) for one in tasks])
    assert [(row.level_id, row.task_id) for row in rows] == [(0, 1), (1, 19), (2, 3)] and not left_out
    path = tmp_path / "ours.jsonl"
    path.write_text("".join(f"{line}\n" for line in release_lines(rows)))
    release = read_release(path)
    assert release.problems == () and [entry.name for entry in release.entries] == ["level0/1", "level1/19", "level2/3"]
    assert [entry.title for entry in release.entries] == ["level0/1 (builtin/gelu)", "level1/19", "level2/3"]
    entry = release.entries[1]
    assert entry.source("custom") == "class ModelNew: ..." and entry.task.source == tasks[0].source
    assert entry.scores == {"default": 2.0, "torch_compile_default": 1.25}
    evidence = json.loads(path.read_text().splitlines()[1])["evidence"]
    assert evidence["task_sha"] == tasks[0].sha and evidence["speedup_eager_low"] == 1.9
    assert (evidence["best_baseline"], evidence["speedup_best_baseline"]) == ("compile", 1.25)
    assert evidence["environment"]["device_name"] == "Test CPU" and evidence["protocol"] == "final"


def test_a_score_against_what_was_not_timed_is_null() -> None:
    one = task("level1/1_A")
    (line,) = release_lines(numbered([(one, record(one, best="channels-last"))])[0])
    row = json.loads(line)
    assert row["score_torch_compile_default"] is None and row["score_cuda_graph"] is None
    assert row["evidence"]["best_baseline"] == "channels-last"


def test_of_two_shapes_of_a_problem_the_later_record_stands() -> None:
    old, new = task("level1/19_ReLU", text="x = 1"), task("level1/19_ReLU", text="x = 2")
    for pairs in ([(old, record(old)), (new, record(new, 2))], [(new, record(new, 2)), (old, record(old))]):
        ((row,), (told,)) = numbered(pairs)
        assert row.task == new and old.id in told


def test_the_cudnn_score_is_that_against_cudnn_with_its_flags_set() -> None:
    one = task("level1/1_A")
    (line,) = release_lines(numbered([(one, record(one, best="cudnn-benchmark"))])[0])
    assert json.loads(line)["score_cudnn"] == 1.25


def test_a_task_that_was_scaled_down_says_so_and_gives_way_to_the_problem_itself() -> None:
    own, small = task("level1/19_ReLU", text="x = 1"), task("level1/19_ReLU[batch_size=16,dim=64]", text="x = 2")
    (row,), _ = numbered([(small, record(small))])
    assert row.other_sizes == "batch_size=16,dim=64"
    assert json.loads(next(release_lines([row])))["evidence"]["other_sizes"] == "batch_size=16,dim=64"
    (row,), (told,) = numbered([(own, record(own)), (small, record(small, 2))])
    assert row.task == own and row.other_sizes is None and small.id in told and "at the suite's sizes" in told


def test_a_task_with_weights_of_its_own_is_left_out() -> None:
    live = task("m", None).model_copy(update={"weights": Weights(path="w.safetensors", sha256="0" * 64)})
    rows, (told,) = numbered([(live, record(live))])
    assert not rows and "weights" in told
