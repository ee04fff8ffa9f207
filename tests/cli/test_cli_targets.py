"""What cannot be written is said before anything is judged, by one line and one exit code whatever the command."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_fakes import FAST, REFERENCE, FakeEvaluator
from cli_synth_fakes import FakePool
from typer.testing import Result

from cuda_l1.api import synthesis
from cuda_l1.archive import Archive
from cuda_l1.cli import boundary
from cuda_l1.errors import InfrastructureError

Run = Callable[..., Result]
NOWHERE = Path("/proc/cuda-l1-target")
"""Where nobody can make anything, root included."""
ROW = {"level_id": 1, "task_id": 1, "ref_code": REFERENCE, "custom_code": FAST}
COMMANDS = [
    ("optimize", "ref.py", "--device", "cpu", "--out"),
    ("bench", "file:ref.py", "--device", "cpu", "--bundle"),
    ("replay", "r.jsonl", "--device", "cpu", "--out"),
    ("replay", "r.jsonl", "--device", "cpu", "--html"),
    ("collect", "ref.py", "--device", "cpu", "--out"),
    ("tasks", "synth", "--n", "1", "--device", "cpu", "--out"),
    ("report", "--out"),
    ("report", "--html"),
]


@pytest.fixture
def idle(reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever judges anything fails."""
    (tmp_path / "r.jsonl").write_text(json.dumps(ROW))
    monkeypatch.setattr(FakeEvaluator, "evaluate", lambda *_, **__: pytest.fail("judged"))
    monkeypatch.setattr(synthesis, "EvaluatorPool", lambda *_: pytest.fail("audited"))


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join((words[0], words[-1])))
def test_a_place_that_cannot_be_written_to_is_one_line_and_exit_code_2(run: Run, idle: None, words: list[str]) -> None:
    if words[0] == "collect":
        pytest.importorskip("pyarrow")
    result = run(*words, NOWHERE)
    assert result.exit_code == 2, result.output
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("cuda-l1: ")]
    assert str(NOWHERE) in line and result.stderr.endswith(f"{line}\n") and not result.stdout


@pytest.mark.parametrize("words", COMMANDS[:4], ids=lambda words: " ".join((words[0], words[-1])))
def test_a_full_disk_is_said_first_with_its_place(
    run: Run, idle: None, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**more: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    result = run(*words, "target")
    assert result.exit_code == 3
    assert result.stderr == f"cuda-l1: {words[-1]} target: No space left on device; free some space there\n"


def test_a_device_is_a_target(run: Run, reference: Path, tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text(json.dumps(ROW))
    assert run("replay", "r.jsonl", "--device", "cpu", "--out", "/dev/null").exit_code == 0


def test_a_disk_that_fills_up_while_tasks_are_audited_is_named(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synthesis, "EvaluatorPool", FakePool)
    FakePool.audited, FakePool.dies_after = [], None
    write = Path.write_text

    def full(path: Path, text: str, *rest: object) -> int:
        if path.suffix == ".py":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # `write` names no file
        return write(path, text)

    monkeypatch.setattr(Path, "write_text", full)
    result = run("tasks", "synth", "--n", "3", "--device", "cpu", "--out", tmp_path / "made")
    assert result.exit_code == InfrastructureError.exit_code
    assert f"cuda-l1: {tmp_path / 'made'}: No space left on device; the tasks before are kept" in result.stderr


def test_a_full_disk_that_nothing_names_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    def full() -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert boundary.exit_code(full, kept="") == 3
    assert "No space left on device; `df` says which disk is full" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "told"), [(errno.EMFILE, "`ulimit -n 4096`"), (errno.EFBIG, "`ulimit -f unlimited`")]
)
def test_a_limit_of_the_shell_says_how_to_raise_it(capsys: pytest.CaptureFixture[str], number: int, told: str) -> None:
    def limited() -> int:
        raise OSError(number, os.strerror(number))

    assert boundary.exit_code(limited, kept="") == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(told)


def evaluated_under(limit: str, folder: Path, reference: Path) -> str:
    """What a command says that a limit of its shell ends as a fault of the machine, without a traceback."""
    candidate = folder / "candidate.py"
    candidate.write_text(f"{reference.read_text()}\n\nclass ModelNew(Model):\n    pass\n")
    asked = f"{sys.executable} -m cuda_l1 evaluate {reference} {candidate} --archive a.sqlite --device cpu"
    done = subprocess.run(
        f"ulimit {limit}; {asked}",
        shell=True, executable="/bin/bash", cwd=folder, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 3 and "Traceback" not in done.stderr
    return done.stderr.rstrip()


@pytest.mark.parametrize("files", [8, 16])
def test_too_few_open_files_say_how_to_have_more(tmp_path: Path, reference: Path, files: int) -> None:
    said = evaluated_under(f"-n {files}", tmp_path, reference)
    assert said.endswith("Too many open files; raise the limit on open files with `ulimit -n 4096`")


def test_files_that_are_too_small_for_an_evaluation_are_said_at_once(tmp_path: Path, reference: Path) -> None:
    (line,) = evaluated_under("-f 2048", tmp_path, reference).splitlines()
    assert "files may hold 2.0 MiB here" in line and line.endswith("with `ulimit -f unlimited`")


def test_a_full_stdout_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m cuda_l1.cli tasks show pooling_chain >/dev/full",
        shell=True, executable="/bin/bash", cwd=tmp_path, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (3, "cuda-l1: stdout: No space left on device\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("replay", "r.jsonl", "--device", "cpu", "--out", "r.jsonl"), "is what the command reads"),
        (("replay", "r.jsonl", "--device", "cpu", "--out", "./link.jsonl"), "is what the command reads"),
        (("replay", "r.jsonl", "--device", "cpu", "--out", "a.sqlite"), "is a database"),
        (("report", "--archive", "a.sqlite", "--out", "a.sqlite"), "is a database"),
        (("optimize", "ref.py", "--device", "cpu", "--out", "a.sqlite"), "is a database"),
    ],
)
def test_what_would_be_lost_is_no_place_to_write_to(
    run: Run, idle: None, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    Archive.open(tmp_path / "a.sqlite").close()
    (tmp_path / "link.jsonl").symlink_to("r.jsonl")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    result = run(*words)
    assert result.exit_code == 2 and told in result.stderr and "name a new file" in result.stderr
    assert all((tmp_path / name).read_bytes() == data for name, data in before.items())
