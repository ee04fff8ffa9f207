"""What a verdict costs is split into stages that add up, and real verdicts of that kind are accepted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from benchmark_fakes import GPU, final

import verdict_cost
from csv_table import Table, read_rows
from provenance import columns_of
from verdict_cost import COLUMNS, WAYS, columns, report


def test_samples_are_told_apart_from_the_rest(tmp_path: Path) -> None:
    table = Table(tmp_path / "verdict_cost.csv", COLUMNS, keys=2)
    for number in (1, 2, 3):
        row = {"way": WAYS[3], "number": number, "outcome": "ACCEPTED", "round_trip_s": 3.0 + number}
        table.append({**row, **columns(final("x", 2.0, 1.5).evaluation), **columns_of(GPU)})
    text = report(table.rows())
    assert "| without_samples | 2.400 | 2.400 | 2.400 |" in text
    assert "| round_trip | 5.000 | 4.000 | 6.000 |" in text
    assert "A pair costs 0.60 s, all in." in text


def test_no_two_candidates_have_one_text() -> None:
    assert verdict_cost.candidate().id != verdict_cost.candidate().id


@pytest.mark.e2e
def test_the_candidate_is_right_and_its_cost_is_measured_once(tmp_path: Path) -> None:
    command = [sys.executable, verdict_cost.__file__, "--device", "cpu", "--repeats", "1", "--finals", "0"]
    done = [subprocess.run([*command, "--out", str(tmp_path)], capture_output=True, text=True) for _ in range(2)]
    assert [d.returncode for d in done] == [0, 0], done[0].stderr
    rows = read_rows(tmp_path / "verdict_cost.csv", ("way", "number"))
    assert [(row["way"], row["outcome"]) for row in rows] == [(way, "ACCEPTED") for way in WAYS[:3]]
    assert done[0].stderr.count("ACCEPTED") == 3 and not done[1].stderr
