"""Two clocks' speed-ups of one kernel, and what is made of their difference."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from benchmark_fakes import GPU

import agreement
import repeatability
import throughput
from csv_table import Table
from cuda_l1.errors import UsageError
from provenance import columns_of


@pytest.mark.parametrize(
    ("other", "device", "call", "said"),
    [
        (2.05, 2.0, 1.1, agreement.AGREE),
        (1.5, 2.0, 1.1, agreement.LAUNCHES),
        (1.5, 1.1, 2.0, agreement.LAUNCHES),
        (2.2, 2.0, 1.1, agreement.UNEXPLAINED),
        (1.0, 2.0, 1.1, agreement.UNEXPLAINED),
    ],
)
def test_a_difference_between_both_clocks_is_explained(other: float, device: float, call: float, said: str) -> None:
    assert agreement.explained(other, device, call) == said


def test_who_misses_the_figure_of_a_reference_against_itself_errs() -> None:
    assert agreement.explained(0.88, 1.002, 1.02, is_one=True) == agreement.THEIRS_ERRS
    assert agreement.explained(1.02, 1.002, 1.02, is_one=True) == agreement.AGREE


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """A command line over two tables: five kernels of ours, four of theirs, of which one has no figure."""
    ours = Table(tmp_path / "repeat.csv", repeatability.REPEAT_COLUMNS, keys=3)
    for name in ("none a/0", "none b/0", "none c/0", "none d/0", "none e/0"):
        for number, device in enumerate((1.9, 2.0, 2.3)):
            low = 0.9 if name == "none e/0" else 1.8
            for clock, speedup in (("device", device), ("call", 1.2)):
                figures = {"speedup": speedup, "low": low, "high": 2.2, "candidate_us": 10, "reference_us": 20}
                ours.append({"workload": name, "number": number, "clock": clock, **figures, **columns_of(GPU)})
    theirs = Table(tmp_path / "candidates.csv", throughput.CANDIDATE_COLUMNS, keys=4)
    key = {"kind": "none", "protocol": "default"}
    for name, other in (("a/0", 2.01), ("b/0", 1.5), ("c/0", None), ("e/0", 1.3)):
        theirs.append({**key, "system": throughput.THEIRS, "name": name, "speedup": other})
    theirs.append({**key, "system": throughput.OURS, "name": "d/0", "speedup": 2.0})
    paths = ["--ours", str(tmp_path / "repeat.csv"), "--theirs", str(tmp_path / "candidates.csv")]
    return ["agreement.py", "--out", str(tmp_path / "out"), *paths]


def test_what_both_have_judged_is_compared(tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", words)
    for _ in range(2):
        agreement.main()
        rows = Table(tmp_path / "out" / "agreement.csv", agreement.COLUMNS, keys=2).rows()
        assert [(row["name"], row["theirs"], row["device"], row["verdict"]) for row in rows] == [
            ("a/0", "2.01", "2", agreement.AGREE),
            ("b/0", "1.5", "2", agreement.LAUNCHES),
            ("c/0", "", "", agreement.NO_FIGURE),
            ("e/0", "1.3", "2", agreement.THEIRS_ERRS),
        ]
    assert rows[1]["difference_percent"] == "-25" and rows[1]["verdicts"] == "3"
    text = (tmp_path / "out" / "agreement.md").read_text()
    assert "| none | 1 | 1 | 1 | 0 | 1 |" in text and "| b/0 | 1.5 |" in text and "| a/0 |" not in text


def test_tables_that_share_nothing_are_refused(
    tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [*words[:-1], str(tmp_path / "nothing.csv")])
    with pytest.raises(UsageError, match=r"nothing\.csv: no such file"):
        agreement.main()
    empty = Table(tmp_path / "other.csv", throughput.CANDIDATE_COLUMNS, keys=4)
    empty.append({"kind": "none", "protocol": "default", "system": throughput.THEIRS, "name": "z/0", "speedup": 1})
    monkeypatch.setattr(sys, "argv", [*words[:-1], str(tmp_path / "other.csv")])
    with pytest.raises(UsageError, match="no kernel in common"):
        agreement.main()
