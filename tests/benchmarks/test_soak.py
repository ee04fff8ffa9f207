"""Forty mixed evaluations with every fault among them, and what the soak says of rows that are wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from benchmark_fakes import GPU

import soak
from csv_table import Table, read_rows
from provenance import columns_of
from soak_cases import MIXED, WORKLOADS, candidate, faulty, task


def row(number: int, **more: object) -> dict[str, object]:
    common = {"phase": "soak", "number": f"soak-{number}", "task": "t", "candidate": "honest", "seconds": 1.0}
    counted = dict.fromkeys(soak.COUNTED, 10) | {"parent": 77}
    return {**common, "retries": 0, "outcome": "ACCEPTED", "expected": "ACCEPTED", **counted, **columns_of(GPU), **more}


def found(folder: Path, *rows: dict[str, object]) -> list[str]:
    table = Table(folder / "soak.csv", soak.COLUMNS, keys=2)
    for one in rows:
        table.append(one)
    return soak.troubles(table.rows(), len(rows))


def test_rows_as_they_should_be_are_no_trouble(tmp_path: Path) -> None:
    assert found(tmp_path, *(row(n, parent_descriptors=10 + n % 2) for n in range(10))) == []


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        ({"outcome": "CRASHED", "fault": "judge"}, "CRASHED where it was ACCEPTED"),
        ({"seconds": 12.5}, "took 12.5 s"),
        ({"parent_descriptors": 14}, "parent_descriptors grew from 10 to 14"),
        ({"processes": 12}, "processes grew"),
        ({"own_mb": 90.0}, "own_mb grew"),
        ({"folders": 40}, "folders grew"),
    ],
)
def test_what_is_not_as_it_should_be_is_said(tmp_path: Path, odd: dict[str, object], words: str) -> None:
    (line,) = found(tmp_path, *(row(n) for n in range(4)), row(4, **odd))
    assert words in line
    assert words in soak.report(read_rows(tmp_path / "soak.csv", soak.COLUMNS[:2]), [line])


def test_verdicts_that_are_missing_are_trouble(tmp_path: Path) -> None:
    table = Table(tmp_path / "soak.csv", soak.COLUMNS, keys=2)
    table.append(row(0))
    assert soak.troubles(table.rows(), 2) == ["1 of 2 evaluations have a verdict"]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_fifth_of_the_plan_holds_a_fault_each_kind_at_least_once_in_forty(device: str) -> None:
    steps = soak.plan(500, device)
    assert soak.plan(60, device) == steps[:60]
    struck = [step for step in steps if step.kill or step.candidate in faulty(device)]
    assert len(struck) == 100
    first = {step.kill or step.candidate for step in struck[:8]}
    assert len(first) == 8 and (device == "cuda" or first == {*soak.KILLED, *faulty(device), "parent"})
    assert sum(step.kill == "parent" for step in steps) == 1, "its life is what growth is measured over"
    assert {step.candidate for step in steps} >= set(MIXED)


def test_every_candidate_is_another_text_for_its_task() -> None:
    made = [candidate(name, kind, "cuda") for name in WORKLOADS for kind in (*MIXED, *faulty("cuda"))]
    assert len({one.id for one in made}) == len(made)
    assert {one.task_sha for one in made} == {task(name).sha for name in WORKLOADS}


@pytest.mark.e2e(always=True)
@pytest.mark.timeout(900)
def test_forty_evaluations_with_every_fault(tmp_path: Path) -> None:
    command = [sys.executable, soak.__file__, "--device", "cpu", "--count", "40", "--out", str(tmp_path)]
    done = [subprocess.run(command, capture_output=True, text=True) for _ in range(2)]
    assert [d.returncode for d in done] == [0, 0], done[0].stderr
    rows = [r for r in read_rows(tmp_path / "soak.csv", soak.COLUMNS[:2]) if r["phase"] == "soak"]
    assert len(rows) == 40 and sum(bool(r["hit"]) for r in rows) >= len(soak.KILLED)
    assert sum(int(r["retries"]) for r in rows) >= 3, "judge, template, keeper or parent were really missed"
    assert "## Not as it should be\n\n- nothing" in (tmp_path / "soak.md").read_text()
    assert "40 of 40" in done[0].stderr and "40 of 40" not in done[1].stderr
