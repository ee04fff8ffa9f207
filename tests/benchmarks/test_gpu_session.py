"""A session runs its steps whatever becomes of each, and what it packs is what the next one continues from."""

from __future__ import annotations

import sqlite3
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

import gpu_session
from cuda_l1.errors import UsageError
from provenance import ROOT

SCRIPT = """
import os, pathlib, sqlite3, sys, time
what, work = sys.argv[1], pathlib.Path(sys.argv[2])
folder = work / what
folder.mkdir(parents=True, exist_ok=True)
(folder / "runs").mkdir(exist_ok=True)
(folder / "runs" / "events.jsonl").write_text("{}\\n")
with (folder / "rows.csv").open("a") as file:
    file.write(f"{what} {os.environ.get('CUDA_L1_COMMIT')} {os.environ.get('CUDA_VISIBLE_DEVICES')} {sys.argv[3:]}\\n")
archive = sqlite3.connect(folder / "archive.sqlite")
archive.execute("pragma journal_mode=wal")
archive.execute("create table if not exists t (x)")
archive.execute("insert into t values (1)")
archive.commit()
print(f"{what} says something")
if what == "slow":
    time.sleep(300)
os._exit(3 if what == "bad" else 0)  # without closing the archive: its last transactions are in the -wal file
"""


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    script = tmp_path / "step.py"
    script.write_text(SCRIPT)
    steps = {name: f"{script} {name} {{work}}" for name in ("good", "bad", "slow", "suite")}
    monkeypatch.setattr(gpu_session, "STEPS", steps)
    monkeypatch.setattr(gpu_session, "LEAST_S", 0.0)

    def run(*arguments: str, out: str = "out", work: str = "work") -> int:
        places = "--out", str(tmp_path / out), "--work", str(tmp_path / work), "--commit", "c0ffee"
        monkeypatch.setattr(sys, "argv", ["gpu_session.py", *arguments, *places])
        return gpu_session.main()

    return run


def log(tmp_path: Path) -> str:
    return (tmp_path / "out" / "session.log").read_text()


def packed(path: Path) -> list[str]:
    with tarfile.open(path) as file:
        return file.getnames()


def test_a_failure_and_a_limit_do_not_stop_the_others(session: Callable[..., int], tmp_path: Path) -> None:
    assert session("bad", "slow:2", "good") == 1
    text = log(tmp_path)
    assert "bad: ended with [3]" in text and "slow: ended with [-15]" in text and "good: ended with [0]" in text
    assert "end" in text.splitlines()[-1]


def test_results_and_verdicts_are_packed_apart(session: Callable[..., int], tmp_path: Path) -> None:
    assert session("good") == 0
    assert packed(tmp_path / "out" / "results.tar.gz") == ["good/rows.csv", "logs/good-1.txt"]
    assert packed(tmp_path / "out" / "archive.tar.gz") == ["good/archive.sqlite", "good/runs/events.jsonl"]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"session.log", "results.tar.gz", "archive.tar.gz"}


def test_the_next_session_continues_from_the_last(session: Callable[..., int], tmp_path: Path) -> None:
    session("good")
    archives = [f"--from={tmp_path / 'out' / name}" for name in ("results.tar.gz", "archive.tar.gz")]
    session("good", *archives, out="out2", work="work2")
    assert (tmp_path / "work2" / "good" / "rows.csv").read_text().count("good c0ffee") == 2
    rows = sqlite3.connect(tmp_path / "work2" / "good" / "archive.sqlite").execute("select count(*) from t").fetchone()
    assert rows == (2,)


def test_a_folder_can_be_continued_from(session: Callable[..., int], tmp_path: Path) -> None:
    session("good")
    session("good", "--from", str(tmp_path / "work"), out="out2", work="work2")
    assert (tmp_path / "work2" / "good" / "rows.csv").read_text().count("\n") == 2


def test_what_does_not_fit_is_not_begun(session: Callable[..., int], tmp_path: Path) -> None:
    assert session("good", "--limit", "1s") == 1
    assert "good: not begun" in log(tmp_path)


def test_arguments_are_added_and_gpus_shared_out(session: Callable[..., int], tmp_path: Path) -> None:
    assert session("suite", "--add", "suite=--budget 30s", "--gpus", "2") == 0
    lines = sorted((tmp_path / "work" / "suite" / "rows.csv").read_text().splitlines())
    assert lines == [
        "suite c0ffee 0 ['--budget', '30s', '--shard', '1/2']",
        "suite c0ffee 1 ['--budget', '30s', '--shard', '2/2']",
    ]


@pytest.mark.parametrize("arguments", [("nothing",), ("good:soon",), ("good", "--add", "nothing=x")])
def test_unknown_steps_are_said_at_once(session: Callable[..., int], arguments: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="known steps are good, bad"):
        session(*arguments)


def test_nothing_to_continue_from_is_one_line(session: Callable[..., int], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--from .*gone\.tar\.gz"):
        session("good", "--from", str(tmp_path / "gone.tar.gz"))


def test_the_real_steps_are_scripts_that_are_there() -> None:
    for name in gpu_session.STEPS:
        (command,) = gpu_session.Step(name, None).commands(Path("w"), 10.0)
        script = next(part for part in command[1:] if part != "-m")
        assert script == "cuda_l1.cli" or (ROOT / script).is_file()
