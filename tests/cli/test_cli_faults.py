"""What is missing, full, locked or interrupted: an exit code and one line, never a traceback."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_fakes import FAST, REFERENCE, lines
from typer.testing import Result

from building import needs_ninja
from cuda_l1.api.places import data_folder
from cuda_l1.archive import Archive, database
from cuda_l1.config import EvaluatorSettings
from cuda_l1.errors import InfrastructureError, TaskError
from cuda_l1.evaluator.parent import Parent

Run = Callable[..., Result]

INTERRUPTED_WHILE_LOADING = """
import sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
from cuda_l1.cli import main
main()
"""

FULL_DISK = """
import resource, sys
import cuda_l1.evaluator
from cli_fakes import FakeEvaluator
from cuda_l1.cli import main

cuda_l1.evaluator.Evaluator = FakeEvaluator
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
sys.argv = ["cuda-l1", "evaluate", "ref.py", "small.py", "large.py", "--device", "cpu", "--archive", "a.sqlite"]
main()
"""

LOG_ON_A_FULL_DISK = """
import os, sys
import cuda_l1.evaluator
from cli_fakes import FakeEvaluator
from cuda_l1.cli import main

cuda_l1.evaluator.Evaluator = FakeEvaluator
os.dup2(os.open("/dev/full", os.O_WRONLY), 2)
sys.argv = ["cuda-l1", "evaluate", "ref.py", "fast.py", "--device", "cpu", "--archive", "a.sqlite"]
main()
"""

NEEDS_NVCC = f"""
import torch
from torch.utils.cpp_extension import load_inline

load_inline("doubled", cpp_sources="", cuda_sources="__global__ void nothing() {{}}", functions=[])
{REFERENCE}
class ModelNew(Model):
    pass
"""


def command(*words: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "CUDA_VISIBLE_DEVICES": "", **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )


def only_line(stderr: str) -> str:
    """The one line of ours; what is talked about before does not begin with the program's name."""
    assert "Traceback" not in stderr
    (line,) = [line for line in stderr.splitlines() if line.startswith("cuda-l1: ")]
    assert stderr.rstrip().endswith(line)
    return line


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "archive.sqlite"
    Archive.open(path).close()
    return path


@pytest.fixture
def locked(archive: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An archive that another process holds for itself, and little patience."""
    monkeypatch.setitem(Archive.open.__func__.__kwdefaults__, "timeout_s", 0.2)  # type: ignore[attr-defined]
    other = sqlite3.connect(archive, isolation_level=None)
    other.execute("PRAGMA journal_mode=delete")
    other.execute("BEGIN EXCLUSIVE")
    yield archive
    other.close()


def test_a_locked_archive(run: Run, locked: Path) -> None:
    result = run("archive", "list", "--archive", locked)
    assert result.exit_code == 3 and not result.stdout
    assert "is locked by another process; wait" in only_line(result.stderr)


def test_an_archive_of_a_newer_version(run: Run, archive: Path) -> None:
    with sqlite3.connect(archive) as connection:
        connection.execute("INSERT INTO cuda_l1_schema VALUES (99, 'm099', '2030-01-01')")
    connection.close()
    result = run("archive", "best", "--archive", archive)
    assert result.exit_code == 3 and not result.stdout
    assert "schema version 99" in only_line(result.stderr) and "upgrade cuda-l1" in result.stderr


def test_a_full_disk_keeps_what_was_recorded(tmp_path: Path) -> None:
    (tmp_path / "ref.py").write_text(REFERENCE)
    (tmp_path / "small.py").write_text("# speedup 2.0\n" + FAST)
    (tmp_path / "large.py").write_text("# speedup 3.0\n# " + "x" * 1_000_000 + "\n" + FAST)
    done = command("-c", FULL_DISK, folder=tmp_path)
    assert done.returncode == 3
    assert "what was recorded is kept" in only_line(done.stderr)
    with Archive.open(tmp_path / "a.sqlite", create=False) as opened:
        (record,) = opened.records()
    assert "# speedup 2.0" in record.candidate.source


def test_ctrl_c_while_it_is_loading(tmp_path: Path) -> None:
    done = command("-c", INTERRUPTED_WHILE_LOADING, folder=tmp_path)
    assert done.returncode == 130 and not done.stdout
    assert done.stderr == "cuda-l1: interrupted; nothing was begun\n"


def test_a_live_module_without_source(tmp_path: Path) -> None:
    import torch

    import cuda_l1

    names = {"torch": torch}
    exec(
        "class Odd(torch.nn.Module):\n    def forward(self, x):\n        return x if x.sum() > 0 else torch.relu(x)\n",
        names,
    )
    module: torch.nn.Module = names["Odd"]()  # type: ignore[assignment, operator]
    with pytest.raises(TaskError, match="source of Odd is not in a file") as caught:
        cuda_l1.optimize(module, torch.randn(2, 2), device="cpu", archive=tmp_path / "a.sqlite")
    assert "\n" not in str(caught.value) and caught.value.exit_code == 2


@pytest.mark.e2e
@pytest.mark.timeout(900)
@needs_ninja
def test_a_candidate_that_needs_nvcc_where_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "ref.py").write_text(REFERENCE)
    (tmp_path / "candidate.py").write_text(NEEDS_NVCC)
    folders = os.environ["PATH"].split(os.pathsep)
    path = os.pathsep.join(folder for folder in folders if not Path(folder, "nvcc").exists())
    # Without CUDA_HOME torch would look at /usr/local/cuda, whatever the path says.
    hidden = {"PATH": path, "CUDA_HOME": str(tmp_path / "none"), "TORCH_CUDA_ARCH_LIST": "9.0"}
    words = ("evaluate", "ref.py", "candidate.py", "--device", "cpu", "--protocol", "screen", "--archive", "a.sqlite")
    done = command("-m", "cuda_l1.cli", *words, folder=tmp_path, **hidden)
    assert done.returncode == 1 and "Traceback" not in done.stdout + done.stderr
    (line,) = [line for line in done.stdout.splitlines() if "BUILD_FAILED" in line]
    assert "nvcc was not found, `cuda-l1 doctor` says how to get it" in line


@pytest.mark.parametrize("where", ["postgresql://somebody@server/verdicts", None])
def test_data_lies_under_xdg_data_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str | None) -> None:
    monkeypatch.delenv("CUDA_L1_ARCHIVE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert data_folder(where) == tmp_path / "cuda-l1"


def test_a_user_without_a_home(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that is started under a number that nobody has there."""

    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nobody)
    monkeypatch.delenv("CUDA_L1_ARCHIVE")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    result = run("archive", "list")
    assert result.exit_code == 2 and "no home folder; set HOME, or XDG_DATA_HOME" in only_line(result.stderr)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert data_folder(None) == tmp_path / "cuda-l1"


def test_an_archive_that_may_only_be_read(run: Run, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a share of somebody else's: it can be looked at and merged from, and nothing is written beside it."""
    (archive.parent / "ref.py").write_text(REFERENCE)
    (archive.parent / "good.py").write_text("# speedup 2.0\n" + FAST)
    assert run("evaluate", "ref.py", "good.py", "--device", "cpu", "--archive", archive).exit_code == 0
    theirs = archive.parent / "th eirs ü#?%.sqlite"
    archive.rename(theirs)
    before = sorted(theirs.parent.iterdir())
    monkeypatch.setattr(database, "_is_writable", lambda path: path != theirs)
    assert "2.00x" in run("archive", "list", "--archive", theirs).stdout
    assert run("archive", "best", "--archive", theirs).exit_code == 0
    assert sorted(theirs.parent.iterdir()) == before
    assert "1 new record\n" in run("archive", "merge", theirs).stdout


def test_a_cache_folder_that_cannot_be_made(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "cache"))
    with pytest.raises(InfrastructureError, match=r"file/cache/cuda-l1 cannot be written to: Not a directory; .* XDG_"):
        Parent(EvaluatorSettings(device="cpu"))
    told = run("doctor", "--archive", tmp_path / "file" / "a.sqlite", "--json")
    summary = lines(told)[-1]
    assert told.exit_code == 1 and {"disk", "archive"} <= set(summary["missing"])
    (disk,) = [line for line in lines(told) if line.get("name") == "disk"]
    assert disk["detail"] == f"{tmp_path / 'file'} cannot be written to"


def test_a_terminal_that_knows_no_umlaut(tmp_path: Path) -> None:
    (tmp_path / "größe.py").write_text(REFERENCE)
    done = command("-m", "cuda_l1.cli", "tasks", "list", ".", folder=tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and not done.stderr and "gr??e" in done.stdout


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-", "| true", ">/dev/full"])
def test_streams_that_nobody_holds_open(tmp_path: Path, closed: str, unbuffered: str) -> None:
    done = subprocess.run(
        f"set -o pipefail; {sys.executable} -m cuda_l1.cli tasks show pooling_chain {closed}",
        shell=True, executable="/bin/bash", cwd=tmp_path, capture_output=True, text=True, timeout=100,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )  # fmt: skip
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    assert done.returncode == (3 if closed == ">/dev/full" else 0), done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_talk_that_cannot_be_written_ends_no_work(tmp_path: Path, unbuffered: str) -> None:
    """A log on a full disk, say: what the command was asked for is there, and its exit code is that of the work."""
    (tmp_path / "ref.py").write_text(REFERENCE)
    (tmp_path / "fast.py").write_text("# speedup 2.0\n" + FAST)
    done = command("-c", LOG_ON_A_FULL_DISK, folder=tmp_path, PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 0 and "2.00x" in done.stdout


@pytest.mark.parametrize("asked", ["--help", "--version", "optimize --help"])
def test_help_on_a_full_disk_is_one_line(tmp_path: Path, asked: str) -> None:
    done = subprocess.run(
        f"{sys.executable} -m cuda_l1.cli {asked} >/dev/full",
        shell=True, executable="/bin/bash", cwd=tmp_path, capture_output=True, text=True, timeout=100,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert done.stderr == "cuda-l1: the output cannot be written: No space left on device\n"


def test_help_that_nobody_reads_to_the_end(tmp_path: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m cuda_l1.cli optimize --help | true",
        shell=True, executable="/bin/bash", cwd=tmp_path, capture_output=True, text=True, timeout=100,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
    )  # fmt: skip
    assert not done.stderr
