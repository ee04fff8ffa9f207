"""The figures of this repository's README are what its commands make of the records that are committed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import without_texts
from cuda_l1.cli.app import app
from cuda_l1.report.readme import parts

ROOT = Path(__file__).parents[2]


def test_the_readme_shows_what_its_commands_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "README.md").read_text()
    before, after = parts(text, "README.md")
    records = re.findall(r"unpack (docs/\S+) figures\.sqlite\n", before)
    assert len(records) == 3 and "cuda-l1 report --archive figures.sqlite --readme README.md\n" in before
    monkeypatch.chdir(tmp_path)
    for path in records:
        without_texts.unpack(ROOT / path, "figures.sqlite", [])
    Path("README.md").write_text(f"{before}\n{after}")
    done = CliRunner().invoke(app, ["report", "--archive", "figures.sqlite", "--readme", "README.md"])
    assert done.exit_code == 0, done.output
    assert Path("README.md").read_text() == text
