"""A figure says where it comes from."""

from __future__ import annotations

import re

import pytest
from benchmark_fakes import GPU

from cuda_l1.errors import UsageError
from provenance import COMMIT, PROVENANCE, Deadline, columns_of, commit, header


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
    assert set(columns_of(GPU)) == set(PROVENANCE)


def test_a_deadline_is_a_time() -> None:
    assert Deadline(None).allows(1e9)
    assert Deadline("1h").allows(3000) and not Deadline("1h").allows(4000)
    with pytest.raises(UsageError, match="--deadline 20"):
        Deadline("20")
