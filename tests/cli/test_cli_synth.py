"""`cuda-l1 tasks synth`: mistakes in one line, and a run with the real evaluator that goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_synth_fakes import FakePool
from typer.testing import CliRunner

from cuda_l1.api import synthesis
from cuda_l1.cli.app import app


def run(*words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["tasks", "synth", *words])
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--level", "4"), "levels are 1, 2 and 3"),
        (("--level", "3-1"), "levels are 1, 2 and 3"),
        (("--level", "hard"), "levels are 1, 2 and 3"),
        (("--device-memory", "0"), "from 1 to 1024"),
        (("--device-memory", "nan"), "from 1 to 1024"),
        (("--n", "0"), "--n"),
        (("--seed", "-1"), "--seed"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    code, _, error = run("--out", str(tmp_path / "made"), "--device", "cpu", *words)
    assert code == 2
    assert said in error
    assert "Traceback" not in error
    assert not (tmp_path / "made").exists()


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    code, _, error = run("--out", str(tmp_path), "--device", "cpu", "--n", "1")
    assert code == 2
    assert "holds no manifest.jsonl" in error
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_an_interrupted_run_goes_on_and_pays_for_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthesis, "EvaluatorPool", FakePool)
    FakePool.audited, FakePool.dies_after = [], 5
    words = ("--out", str(tmp_path / "made"), "--device", "cpu", "--n", "12", "--json")
    assert run(*words)[0] == 130
    assert len(FakePool.audited) == 5
    FakePool.dies_after = None
    code, out, _ = run(*words)
    assert code == 0
    assert len(set(FakePool.audited)) == len(FakePool.audited)
    lines = [json.loads(line) for line in out.splitlines()]
    kept = [line["number"] for line in lines[:-1]]
    assert kept == sorted(kept)
    assert len(kept) == 12
    assert not [number for number in kept if number % 4 == 0]  # what the fake calls unsound
    assert sorted(FakePool.audited) == list(range(1, max(kept) + 1))  # nothing beyond what was needed


@pytest.mark.e2e
def test_tasks_are_audited_and_written(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    words = ("--out", str(folder), "--device", "cpu", "--level", "1", "--json")
    code, out, _ = run(*words, "--n", "2")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert lines[-1]["tasks"] == 2
    first = (folder / "manifest.jsonl").read_text()
    assert all((folder / f"{line['name']}.py").is_file() for line in lines[:-1])
    assert all(line["level"] == 1 and line["sound"] for line in lines[:-1])
    assert run(*words, "--n", "2")[:2] == (0, out)  # and starts no evaluator
    assert (folder / "manifest.jsonl").read_text() == first
