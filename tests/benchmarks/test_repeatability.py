"""Coverage is counted from intervals, and the workloads are what they say."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmark_fakes import EAGER, GPU, final, record, timing

import repeatability
from cuda_l1.config import FINAL
from cuda_l1.errors import TaskError, UsageError
from cuda_l1.types import Candidate, Evaluation, Task
from repeatability import WORKLOADS, Workload, coverage, rows_of

CASES = [(name, workload) for device in WORKLOADS.values() for name, workload in device.items()]


def row(speedup: float, low: float, high: float) -> dict[str, str]:
    return {"speedup": f"{speedup}", "low": f"{low}", "high": f"{high}", "half_width_percent": "1.0",
            "candidate_us": "10", "pairs": "5", "total_s": "2"}  # fmt: skip


def test_an_interval_holds_the_mean_of_all_or_not() -> None:
    # The geometric mean of the four is 1: the third lies above it with all of its interval, the last below.
    group = [row(1.0, 0.9, 1.1), row(1.0, 0.99, 1.01), row(2.0, 1.8, 2.2), row(0.5, 0.4, 0.6)]
    verdicts, inside, width, *_ = coverage(group)
    assert (verdicts, inside, width) == ("4", "2 (50%)", "1.00 %")


def test_a_verdict_is_a_row_per_clock_against_eager() -> None:
    rows = list(rows_of(final("x", 2.0, 1.5, half=0.05).evaluation))
    assert [(r["clock"], r["speedup"]) for r in rows] == [("device", 2.0), ("call", 1.8)]
    assert rows[0]["half_width_percent"] == pytest.approx(5.0)
    assert rows[0]["pairs"] == 5


def test_a_verdict_without_an_interval_is_a_row_without_figures() -> None:
    evaluation = record(EAGER, [timing("device", EAGER, 1.0, None)]).evaluation
    assert [(r["clock"], r.get("speedup")) for r in rows_of(evaluation)] == [("none", None)]


@pytest.mark.parametrize(("low", "high", "excluded"), [(0.9, 1.1, False), (1.01, 1.1, True), (0.8, 0.99, True)])
def test_an_interval_beside_one_is_told(low: float, high: float, excluded: bool) -> None:
    assert repeatability._excludes_one({"low": low, "high": high}) is excluded


@pytest.mark.parametrize(("name", "workload"), CASES, ids=[name for name, _ in CASES])
def test_both_texts_of_a_workload_compute_the_same(name: str, workload: Workload) -> None:
    task = workload.task(name)
    reference: dict[str, Any] = {}
    other: dict[str, Any] = {}
    exec(task.source, reference)
    exec(workload.candidate(task).source, other)
    torch.manual_seed(0)
    model = reference["Model"]()
    torch.manual_seed(0)
    again = other["ModelNew"]()
    x = torch.randn(3, workload.inner or 7)
    torch.testing.assert_close(model(x), again(x))
    assert math.prod(workload.shape) >= 1 << 18


class FakeEvaluator:
    """Every verdict is the same; one task cannot be judged."""

    environment = GPU

    def __init__(self, *_: object) -> None:
        self.judged: list[str] = []

    def evaluate(self, task: Task, candidate: Candidate, *, protocol: object) -> Evaluation:
        self.judged.append(task.name)
        if task.name == "batched_matmul":
            raise TaskError("does not fit the device")
        return final("x", 1.02, 1.5, half=0.01).evaluation


def judge() -> Any:
    """What stands in for an Evaluator."""
    return FakeEvaluator()


@pytest.fixture
def options(tmp_path: Path) -> Iterator[Namespace]:
    yield Namespace(out=tmp_path, repeats=2, workloads="1,2", candidates=None, count=3, suite="builtin")


def test_what_is_there_is_not_measured_again(options: Namespace) -> None:
    evaluator = judge()
    steps = repeatability.repeat(evaluator, FINAL, options)
    next(steps)
    list(repeatability.repeat(evaluator, FINAL, options))
    assert len(evaluator.judged) == 4
    assert "| relu 1 MB, about 5 us | device | 2 | 2 (100%)" in repeatability.report(options)


def test_candidates_of_a_batch_are_each_of_a_task_of_its_own(options: Namespace) -> None:
    chosen = repeatability._of_a_batch("cuda", 30)
    assert len({task.sha for task, _ in chosen.values()}) == 30
    assert [name.split()[0] for name in chosen] == ["none"] * 20 + ["triton"] * 10
    with pytest.raises(UsageError, match="there are 40"):
        repeatability._of_a_batch("cuda", 41)
    options.candidates = 3
    list(repeatability.repeat(judge(), FINAL, options))
    assert "| device | 3 | 6 | 6 (100.0%) | 6 (100.0%) | - |" in repeatability.report(options)


def test_verdicts_near_the_median_of_their_candidate_are_counted() -> None:
    slow = [{**row(speedup, 0.9, 1.1), "candidate_us": "100"} for speedup in (1.0, 1.0, 1.009, 1.015)]
    assert repeatability._near_the_median(slow) == 3
    assert repeatability._near_the_median([{**one, "candidate_us": "99"} for one in slow]) == 4


def test_references_against_themselves_are_counted_per_clock(options: Namespace) -> None:
    list(repeatability.against_itself(judge(), FINAL, options))
    text = repeatability.report(options)
    assert "| device | 2 | 2 |" in text and "| call | 2 | 2 |" in text


def test_an_unknown_workload_is_named_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="choose of 1 relu"):
        repeatability._chosen("cuda", "9")
