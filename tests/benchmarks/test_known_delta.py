"""Known delays: what must be found, what is made of it, and one small run."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmark_fakes import COMPILE, EAGER, GPU, record, timing

import known_delta
import known_delta_spin
from csv_table import Table, read_rows
from cuda_l1.types import Evaluation, Task, TaskAudit
from known_delta import Delay
from provenance import columns_of


def test_what_a_delay_must_give_on_each_clock() -> None:
    host, device = Delay("host", 5, 10.0, ""), Delay("device", 5, 10.0, "")
    assert host.expected("call", 190.0) == device.expected("device", 190.0) == 0.95
    assert host.expected("device", 190.0) == 1.0, "the launch is hidden behind the gate"


def test_an_interval_holds_what_is_expected_or_not() -> None:
    opponent_us = timing("device", EAGER, 0.95, 0.01).opponent_us
    evaluation = record(COMPILE, [timing("device", EAGER, 0.95, 0.01), timing("call", EAGER, 0.5, 0.01)]).evaluation
    rows = list(known_delta.figures(evaluation, Delay("device", 5, opponent_us / 19, "")))
    assert [(row["clock"], row["held"]) for row in rows] == [("device", True), ("call", False)]
    assert rows[0]["expected"] == pytest.approx(0.95)


def test_a_host_spin_lasts_as_long_as_it_says() -> None:
    amount, us = known_delta_spin.host(400.0)
    assert amount == 400_000 and 400.0 <= us < 4000.0
    assert known_delta_spin.host(0.0)[1] < us


def test_a_kernels_length_is_what_it_adds_to_a_chain() -> None:
    calls: list[int | None] = []

    def chain(cycles: int | None) -> float:
        calls.append(cycles)
        return 50.0 if cycles is None else 52.0 + cycles / 1000

    assert known_delta_spin.added(chain, 3000) == 5.0 and calls.count(3000) == known_delta_spin.ROUNDS


def test_a_report_counts_intervals(tmp_path: Path) -> None:
    table = Table(tmp_path / "known_delta.csv", known_delta.COLUMNS, keys=5)
    common = {"workload": "w", "side": "host", "percent": 2, "clock": "call", "outcome": "ACCEPTED", "expected": 0.98}
    figures = {"speedup": 0.981, "half_width_percent": 1.0, **columns_of(GPU)}
    for number, held in enumerate((True, True, False)):
        table.append({**common, **figures, "number": number, "held": held})
    table.append({**common, **columns_of(GPU), "number": 9, "outcome": "CRASHED"})
    text = known_delta.report(table.rows())
    assert "2 of 3 intervals (67%) hold" in text
    assert "| w | host | 2 % | call | 3 | 2 | 0.9800 | 0.9810 | 1.00 % |" in text and "CRASHED" in text


class Judge:
    """Stands in for an evaluator: finds 0.9 whatever the delay."""

    environment = GPU.model_copy(update={"device": "cpu"})

    def __init__(self, settings: object) -> None: ...
    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None: ...
    def audit(self, task: Task) -> TaskAudit:
        return TaskAudit(task_id=task.id, task_class="fp32", mode="train", reference_us=500.0)

    def evaluate(self, *_: object, **__: object) -> Evaluation:
        return record(COMPILE, [timing("call", EAGER, 0.9, 0.01)]).evaluation


def test_a_run_stops_at_its_deadline_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_delta, "Evaluator", Judge)
    words = ["known_delta.py", "--device", "cpu", "--repeats", "1", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [*words, "--deadline", "1s"])
    assert known_delta.main() == 1
    monkeypatch.setattr(sys, "argv", words)
    assert known_delta.main() == 0
    rows = read_rows(tmp_path / "known_delta.csv", known_delta.COLUMNS[:5])
    assert [row["percent"] for row in rows] == ["1", "2", "5", "20"]
    delays = [float(row["delay_us"]) for row in rows]
    assert delays == sorted(delays) and all(
        us > 4.5 * percent for us, percent in zip(delays, (1, 2, 5, 20), strict=True)
    )


def test_a_delayed_candidate_is_the_reference_with_the_delay() -> None:
    workload = known_delta.WORKLOADS["cpu"]["product of 512"]
    text = known_delta_spin.HOST_SPIN.format(amount=7)
    source = Delay("host", 5, 1.0, text).candidate(workload.task("product"), workload).source
    space: dict[str, Any] = {}
    exec(source, space)
    done = []
    space["before"], space["behind"] = (lambda: done.append("before")), (lambda: done.append("behind"))
    model, (x,) = space["ModelNew"](*space["get_init_inputs"]()), space["get_inputs"]()
    assert torch.equal(model(x), x @ model.w) and done == ["before", "behind"] and "7" in source


def test_a_delay_on_the_device_is_python() -> None:
    text = known_delta_spin.DEVICE_SPIN.format(amount=7)
    names = {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}
    assert names == {"spin", "before", "behind"} and "spin[(1,)](7," in text


@pytest.mark.gpu
def test_a_spin_of_the_device_lasts_as_long_as_it_says() -> None:
    """Its expected length is measured behind work that heats the card, and the timer runs evenly all the while."""
    task = known_delta.WORKLOADS["cuda"]["product of 4096"].task("product")
    (_, short), (_, long) = known_delta_spin.device(task.source, [50.0, 500.0])
    assert short == pytest.approx(50, rel=0.2) and long == pytest.approx(500, rel=0.05)
