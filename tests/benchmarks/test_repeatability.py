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


def test_a_verdict_alone_is_not_counted_as_near_itself() -> None:
    rows = [{**row(speedup, 0.9, 1.1), "workload": name, "clock": "device"} for name, speedup in
            (("a", 1.0), ("a", 1.0), ("b", 5.0))]  # fmt: skip
    assert repeatability._together(rows) == [["device", "1", "2", "2 (100.0%)", "2 (100.0%)", "-"]]
    assert repeatability._together(rows[2:]) == [["device", "0", "0", "-", "-", "-"]]


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
    yield Namespace(out=tmp_path, repeats=2, workloads="1,2", candidates=None, count=3, suite="builtin", shard="1/1")


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


def test_how_far_off_1_is_told_above_and_below_100_us() -> None:
    slow = [{**row(speedup, 0.9, 1.1), "reference_us": "100"} for speedup in (0.99, 1.002, 1.004)]
    fast = [{**row(speedup, 0.9, 1.1), "reference_us": "99.9"} for speedup in (1.03,)]
    (above, many), (below, one) = repeatability.off_one([*slow, *fast])
    assert (many, one) == (3, 1) and (above, below) == pytest.approx((0.004, 0.03))
    assert repeatability.off_one(fast)[0] == (0.0, 0)


def test_as_many_intervals_may_exclude_1_as_chance_makes_in_99_of_100_runs() -> None:
    assert [repeatability.most_by_chance(count) for count in (0, 1, 24, 74)] == [0, 1, 4, 9]


def against_itself(number: int, speedup: float, excludes: str = "no") -> list[dict[str, str]]:
    one = row(speedup, 0.9, 1.1) | {"clock": "call", "excludes_1": excludes, "reference_us": "500", "task": "t"}
    return [one] * number


def test_a_missed_aim_is_told() -> None:
    met, many, off = against_itself(24, 1.004), against_itself(5, 1.0, "yes"), against_itself(24, 1.006)
    none_below = "- Not known: no task is below 100 us."
    assert repeatability._missed_itself(met) == [none_below, "- All others met."]
    assert repeatability._missed_itself([*met, {**met[0], "reference_us": "50"}]) == ["- All met."]
    assert repeatability._missed_itself(many + met[5:])[1] == "- **Missed**: 5 of 24 intervals exclude 1, 4 may."
    told = repeatability._missed_itself(off)
    assert told == [none_below, "- **Missed**: off 1 by 0.60 % in the median from 100 us on."]
    assert repeatability._missed_itself([{**one, "speedup": ""} for one in met]) == []


def test_a_missed_aim_of_repeats_is_told_on_the_objective_clock() -> None:
    good = [row(1.0, 0.9, 1.1) | {"clock": "device", "workload": "w", "candidate_us": "200"}] * 13
    late = [{**good[0], "low": "1.001"}]
    assert repeatability._missed_again(good) == ["- All met."]
    assert repeatability._missed_again(good + [{**late[0], "clock": "call"}] * 9) == ["- All met."]
    missed = repeatability._missed_again(good + late)
    assert missed == ["- **Missed**: 13 of 14 intervals (92.9%) hold the mean."]
    wide = [{**one, "half_width_percent": "2.5"} for one in good]
    assert repeatability._missed_again(wide) == ["- **Missed**: the half-width is 2.50 % in the median."]


def test_a_page_is_written_again_from_its_tables(options: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    list(repeatability.against_itself(judge(), FINAL, options))
    page = options.out / "repeatability.md"
    page.write_text("# Repeatability\n\n- command: `measured so`\n- device: x\n\n## Notes\n\nMine.\n")
    monkeypatch.setattr("sys.argv", ["repeatability.py", "--out", str(options.out), "--report-only"])
    monkeypatch.setattr(repeatability, "Evaluator", None)
    assert repeatability.main() == 0
    text = page.read_text()
    assert "- command: `measured so`\n- device: Test GPU" in text and text.endswith("\n## Notes\n\nMine.\n")
    assert "| device | 2 | 2 | 0.1 | - | 2.00 % of 2 |" in text and "off 1 by 2.00 % in the median below 100 us" in text
    monkeypatch.setattr("sys.argv", ["repeatability.py", "--out", str(options.out / "none"), "--report-only"])
    with pytest.raises(UsageError, match="holds neither"):
        repeatability.main()


def test_an_unknown_workload_is_named_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="choose of 1 relu"):
        repeatability._chosen("cuda", "9")
