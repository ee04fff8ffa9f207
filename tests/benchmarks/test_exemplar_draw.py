"""The benchmark's archive is one that appending would have left, and its draws are told as a table."""

from __future__ import annotations

from pathlib import Path

from csv_table import Table
from cuda_l1.archive import Archive
from exemplar_draw import COLUMNS, PLACE, _provenance, appending, fill, measured, report


def test_the_filled_archive_counts_what_it_holds(tmp_path: Path) -> None:
    known = fill(tmp_path / "archive.sqlite", 300, 3)
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        for task in known:
            assert archive.exemplars.count(task.sha, PLACE.key) == 100
        appending(archive, known[0], "one more")()
        assert archive.exemplars.count(known[0].sha, PLACE.key) == 101


def test_a_row_for_each_sampler(tmp_path: Path) -> None:
    table = Table(tmp_path / "exemplar_draw.csv", COLUMNS, keys=3)
    for row in measured(tmp_path / "archive.sqlite", fill(tmp_path / "archive.sqlite", 200, 1), 4):
        assert 0 < row["median_ms"] <= row["max_ms"]
        table.append({"records": 200, "tasks": 1, **row, **_provenance()})
    assert "| 200 | 1 | island |" in report(table.rows())
