"""The script that replays a release in steps: rows as they come, a deadline, and going on."""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import replay_release

PRINTS = """
import json, sys, time
for line in json.load(open(sys.argv[1])):
    print(json.dumps(line), flush=True)
{then}
"""


def kernel(number: int, record: str | None = "r", why: str = "cached") -> dict[str, Any]:
    ours = {"outcome": "ACCEPTED", "precision_class": "fp32", "speedup": 1.5, "record": record} if record else None
    return {
        "kind": "replay", "task": f"level1/{number}", "column": "custom", "published": 2.0,
        "theirs": {"outcome": "ACCEPTED", "speedup": 1.9}, "ours": ours, "reference": "release",
        "reference_differs": False, "fault": None if record else "too large", "environment": {"device_name": "GPU"},
        "reasons": [{"why": why, "evidence": "a|b"}], "speedup_eager_low": 1.4, "speedup_eager_high": 1.6,
    }  # fmt: skip


@pytest.fixture
def step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs the script with a command that prints these objects and then does this."""

    def run(*lines: dict[str, Any], then: str = "", deadline: str | None = None) -> list[dict[str, str]]:
        (tmp_path / "lines.json").write_text(json.dumps(lines))
        command = [sys.executable, "-c", PRINTS.format(then=then), str(tmp_path / "lines.json")]
        monkeypatch.setattr(replay_release, "_command", lambda options: command)
        words = ["replay_release.py", "--release", "h100.json", "--out", str(tmp_path / "out")]
        monkeypatch.setattr(sys, "argv", [*words, *(["--deadline", deadline] if deadline else [])])
        replay_release.main()
        with (tmp_path / "out" / "replay.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    return run


def test_each_kernel_is_a_row_and_the_report_counts_the_reasons(step, tmp_path):
    rows = step(kernel(1), kernel(2, None, "degenerate task"), {"kind": "summary"})
    assert [(row["task"], row["speedup_eager"], row["theirs_speedup"]) for row in rows] == [
        ("level1/1", "1.5", "1.9"),
        ("level1/2", "", "1.9"),
    ]
    assert rows[0]["release"] == "h100" and rows[0]["device_name"] == "GPU" and rows[1]["why"] == "too large"
    told = (tmp_path / "out" / "replay.md").read_text()
    assert (
        "| cached | 1 |" in told and "2 kernels, 1 accepted" in told and "| level1/1 | 2.00x | 1.90x | 1.50x |" in told
    )


def test_a_figure_against_another_reference_is_marked(step, tmp_path):
    step(kernel(1) | {"reference": "kernelbench", "reference_differs": True}, {"kind": "summary"})
    assert "| level1/1 | 2.00x (another reference) | 1.90x |" in (tmp_path / "out" / "replay.md").read_text()


def test_kernels_without_a_published_figure_come_last(step, tmp_path):
    step(kernel(10), kernel(1) | {"published": None}, kernel(2), {"kind": "summary"})
    told = (tmp_path / "out" / "replay.md").read_text()
    assert re.findall(r"level1/\d+", told) == ["level1/2", "level1/10", "level1/1"]


def test_a_row_that_is_there_is_not_written_again_and_a_new_verdict_is(step):
    step(kernel(1), kernel(2, None))
    assert len(step(kernel(1), kernel(2, None))) == 2
    assert [row["record"] for row in step(kernel(1, "other"))] == ["r", "", "other"]


def test_at_the_deadline_what_is_there_stays(step, monkeypatch, capsys):
    monkeypatch.setattr(replay_release, "STOPPING_S", 5.0)
    rows = step(kernel(1), then="time.sleep(60)", deadline="1s")
    assert len(rows) == 1 and "run it again to go on" in capsys.readouterr().err


def test_a_command_that_fails_ends_with_its_code(step):
    with pytest.raises(SystemExit, match="3"):
        step(kernel(1), then="sys.exit(3)")
