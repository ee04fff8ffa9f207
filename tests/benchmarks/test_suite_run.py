"""The suite goes on after a fault, skips what is finished and starts nothing that it has no time for."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmark_fakes import GPU, final, result

import suite
from cuda_l1.errors import InfrastructureError, UsageError
from cuda_l1.search import Result

Searched = list[str]


class FakeEvaluator:
    """Opens, has a place, and is asked nothing: the search is a fake too."""

    asked_s = 0.0
    environment = GPU

    def __init__(self, settings: Any) -> None:
        pass

    def __enter__(self) -> FakeEvaluator:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> Searched:
    """The names of the tasks that were searched; `faults` of them raise what a search may raise."""
    names: Searched = []

    def search(task: Any, *_: Any, **__: Any) -> Result:
        names.append(task.name)
        if fault := faults.pop(task.name, None):
            raise fault
        return result(final("fusion", 2.0, 1.3))

    faults: dict[str, BaseException] = {
        "linear_sum": InfrastructureError("disk full"),
        "cumulative_sum": RuntimeError("a defect of ours"),
        "scaled_softmax": KeyboardInterrupt(),
    }
    monkeypatch.setattr(suite, "run_search", search)
    monkeypatch.setattr(suite, "TimedEvaluator", FakeEvaluator)
    return names


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    def start(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["suite.py", "--device", "cpu", "--out", str(tmp_path), *arguments])
        return suite.main()

    return start


def outcomes(folder: Path) -> dict[str, str]:
    with (folder / "suite.csv").open() as file:
        return {row["task"]: row["outcome"] for row in csv.DictReader(file)}


def test_a_fault_is_a_row_and_is_tried_again(run: Callable[..., int], searched: Searched, tmp_path: Path) -> None:
    tasks = "--tasks", "linear_sum,cumulative_sum,pooling_chain"
    assert run(*tasks) == 1
    won = "beats-best-baseline"
    assert outcomes(tmp_path) == {"linear_sum": "error", "cumulative_sum": "error", "pooling_chain": won}
    assert "a defect of ours" in (tmp_path / "suite.csv").read_text()
    assert "linear_sum: error: InfrastructureError: disk full" in (tmp_path / "suite.md").read_text()
    searched.clear()
    assert run(*tasks) == 0
    assert searched == ["linear_sum", "cumulative_sum"]
    assert "3 of 3" in (tmp_path / "suite.md").read_text()


def test_an_interruption_leaves_the_finished_rows(run: Callable[..., int], searched: Searched, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run("--tasks", "pooling_chain,scaled_softmax")
    assert list(outcomes(tmp_path)) == ["pooling_chain"]


def test_nothing_begins_that_has_no_time(run: Callable[..., int], searched: Searched, tmp_path: Path) -> None:
    assert run("--tasks", "pooling_chain", "--budget", "60s", "--deadline", "70s") == 1
    assert searched == [] and "- pooling_chain fp32: not run" in (tmp_path / "suite.md").read_text()


def test_a_shard_runs_its_part_and_reports_on_the_whole(
    run: Callable[..., int], searched: Searched, tmp_path: Path
) -> None:
    tasks = "--tasks", "pooling_chain,moe_routing,gated_mlp", "--keep-evaluator"
    assert run(*tasks, "--shard", "2/2") == 0
    assert searched == ["moe_routing"] and "1 of 3" in (tmp_path / "suite.md").read_text()
    assert run(*tasks, "--shard", "1/2") == 0
    assert "3 of 3" in (tmp_path / "suite.md").read_text()


def test_baselines_can_be_measured_beside_the_budget(
    run: Callable[..., int], searched: Searched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[str] = []
    monkeypatch.setattr(suite, "best_baseline", lambda task, **_: measured.append(task.name))
    run("--tasks", "pooling_chain")
    assert measured == []
    assert run("--tasks", "pooling_chain,moe_routing", "--all-baselines") == 0
    assert measured == ["moe_routing"] and "| beforehand |" in (tmp_path / "suite.md").read_text()


def test_tasks_run_in_the_dtypes_that_they_come_in(run: Callable[..., int], searched: Searched) -> None:
    assert run("--tasks", "diagonal_matmul,pooling_chain", "--dtypes", "fp32,bf16") == 0
    assert searched[:2] == ["diagonal_matmul", "pooling_chain"] and "diagonal_matmul-bf16" in searched


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--tasks", "no_such_task"), "no_such_task"),
        (("--tasks", "diagonal_matmul-bf16"), "--dtypes"),
        (("--dtypes", "fp8"), "fp8"),
        (("--shard", "3/2"), "--shard 3/2"),
        (("--budget", "soon"), "soon"),
        (("--deadline", "20"), "--deadline 20"),
    ],
)
def test_a_mistake_is_said_before_anything_starts(
    run: Callable[..., int], searched: Searched, arguments: tuple[str, ...], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        run(*arguments)
    assert searched == []


def test_rows_of_another_budget_are_not_mixed_in(run: Callable[..., int], searched: Searched) -> None:
    run("--tasks", "pooling_chain")
    with pytest.raises(UsageError, match="rows of budget 60s"):
        run("--tasks", "pooling_chain", "--budget", "5s")


@pytest.mark.e2e
def test_a_real_search_becomes_a_row(tmp_path: Path) -> None:
    command = [sys.executable, suite.__file__, "--device", "cpu", "--budget", "1s", "--tasks", "cumulative_sum"]
    done = subprocess.run([*command, "--out", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with (tmp_path / "suite.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["task"], row["clock"], row["sound"]) == ("cumulative_sum", "call", "yes")
    assert float(row["baselines_s"]) > 0
