"""The table of damaged replies counts every reply once, and a parser that takes thoughts for answers is found out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import damaged_replies
from csv_table import read_rows
from cuda_l1.prompts.reply import ParsedReply


def test_a_row_for_each_kind_of_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["damaged_replies.py", "--out", str(tmp_path), "--count", "300"])
    assert damaged_replies.main() == 0
    rows = read_rows(tmp_path / "damaged_replies.csv", ("damage",))
    assert sum(int(row["replies"]) for row in rows[1:]) == 300 and int(rows[0]["replies"]) >= 200
    assert "| prose rewritten |" in (tmp_path / "damaged_replies.md").read_text()

    def careless(text: str, **more: str) -> ParsedReply:
        return ParsedReply("", "", text, None, "")

    monkeypatch.setattr(damaged_replies, "parse_reply", careless)
    assert damaged_replies.main() == 1
