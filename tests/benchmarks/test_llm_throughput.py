"""The client's throughput is measured against a server of its own, and told as a table."""

from __future__ import annotations

from pathlib import Path

import pytest

import llm_throughput
from csv_table import Table
from llm_throughput import COLUMNS, measured, report


@pytest.mark.e2e
def test_a_row_says_how_busy_the_server_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    row = measured(4, 0.5, 1.0)
    assert row["failed"] == 0 and row["most_in_flight"] == 4
    assert 0.2 < row["busy"] <= 1.001 and 1 < row["per_s"] <= 10
    assert 0 < row["client_cpu"] < 2 and 0 < row["server_cpu"] < 2
    table = Table(tmp_path / "llm_throughput.csv", COLUMNS, keys=2)
    table.append({"concurrency": 4, "answer_s": 0.5, **row, **llm_throughput._provenance()})
    assert "| 4 | 0.5 |" in report(table.rows())
