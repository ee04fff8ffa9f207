"""A figure says where it comes from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmark_fakes import GPU

from cuda_l1.errors import UsageError
from provenance import COMMIT, PROVENANCE, Deadline, columns_of, command_of, commit, header, write_report


def test_the_commit_is_named_where_there_is_no_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMMIT, "c0ffee")
    assert commit() == "c0ffee"


def test_the_commit_is_that_of_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(COMMIT, raising=False)
    assert re.fullmatch(r"[0-9a-f]{12}(\+changes)?|unknown", commit())


def test_a_header_names_everything_that_its_rows_come_from() -> None:
    rows = [dict.fromkeys(PROVENANCE, "x"), dict.fromkeys(PROVENANCE, "x") | {"commit": "y", "driver": ""}]
    lines = header("Title", rows)
    assert lines[0] == "# Title" and "- commit: x, y; date: x" in lines
    assert "- torch: x; rules of the verdicts: x" in lines
    for row in rows:  # as files have them that are older than the column
        del row["rules"]
    assert "- torch: x; rules of the verdicts: none" in header("Title", rows)
    assert set(columns_of(GPU)) == set(PROVENANCE)
    assert columns_of(GPU.model_copy(update={"rules": 7}))["rules"] == 7


def test_a_report_that_is_written_again_keeps_its_notes(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    write_report(page, "# Old\n\nfigures\n")
    write_report(page, page.read_text() + "\n## Notes\n\nSeen on a busy machine.\n\n## More\n\nof it\n")
    for _ in range(2):
        write_report(page, "# New\n\nother figures\n")
        assert page.read_text() == (
            "# New\n\nother figures\n\n## Notes\n\nSeen on a busy machine.\n\n## More\n\nof it\n"
        )


def test_a_report_goes_on_naming_what_it_was_measured_with(tmp_path: Path) -> None:
    page, said = tmp_path / "page.md", "`python a.py --out x`, and on another day\n  `python a.py --more`"
    assert command_of(page) is None
    page.write_text("\n".join(header("Title", [], said)))
    assert command_of(page) == said
    assert "- device: none; driver: none; sandbox rung: none" in header("Title", [], command_of(page))


def test_a_deadline_is_a_time() -> None:
    assert Deadline(None).allows(1e9)
    assert Deadline("1h").allows(3000) and not Deadline("1h").allows(4000)
    with pytest.raises(UsageError, match="--deadline 20"):
        Deadline("20")
