"""Full disks, locks and damage: one line each, and what was committed stays."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cuda_l1.archive import Archive, RunDirectory
from cuda_l1.archive.faults import file_faults
from cuda_l1.config import SearchSettings
from cuda_l1.errors import ArchiveError, InfrastructureError, UsageError
from cuda_l1.types import HackCase, Record, Reply, Task

Make = Callable[..., Record]

FILL_A_SMALL_DISK = """
import resource, signal, sys
from conftest import START, TASK, make_candidate, make_evaluation
from cuda_l1.archive import Archive
from cuda_l1.errors import ArchiveError
from cuda_l1.types import Record

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
stored = 0
with Archive.open(sys.argv[1]) as archive:
    resource.setrlimit(resource.RLIMIT_FSIZE, (800_000, 800_000))
    try:
        for number in range(1000):
            candidate = make_candidate(f"{number} " + "x" * 5000)
            record = Record(run="run", sequence=number, candidate=candidate, evaluation=make_evaluation(candidate))
            archive.append(record, TASK)
            stored += 1
    except ArchiveError as error:
        print(stored, str(error))
"""


def script(text: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", text, *arguments],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_full_disk_loses_nothing_that_was_stored(tmp_path: Path, make_record: Make, task: Task) -> None:
    path = tmp_path / "archive.sqlite"
    output, _ = script(FILL_A_SMALL_DISK, str(path)).communicate(timeout=120)
    stored, message = output.strip().split(" ", 1)
    assert int(stored) > 5
    assert str(path) in message and "what was recorded is kept" in message and "\n" not in message
    with Archive.open(path) as archive:
        assert [record.sequence for record in archive.records()] == list(range(int(stored)))
        archive.append(make_record("there is room again", sequence=5000), task)
        assert len(list(archive.records())) == int(stored) + 1


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_locked_archive_is_one_line_after_the_timeout(
    tmp_path: Path, make_record: Make, task: Task, mode: str
) -> None:
    path = tmp_path / "archive.sqlite"
    with Archive.open(path, timeout_s=0.2) as archive:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute(f"PRAGMA journal_mode={mode}")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ArchiveError, match="is locked by another process; wait") as caught:
            archive.append(make_record(), task)
        assert "\n" not in str(caught.value)
        if mode == "delete":
            with pytest.raises(ArchiveError, match="is locked by another process; wait"):
                Archive.open(path, timeout_s=0.2)
        other.execute("COMMIT")
        other.close()
        archive.append(make_record(), task)


def test_a_damaged_file_is_one_line(tmp_path: Path, make_record: Make, task: Task) -> None:
    path = tmp_path / "archive.sqlite"
    with Archive.open(path) as archive:
        for number in range(50):
            archive.append(make_record(f"{number}", sequence=number), task)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(ArchiveError, match="is damaged"), Archive.open(path) as archive:
        list(archive.records())


def test_a_damaged_document_names_its_record(tmp_path: Path, make_record: Make, task: Task) -> None:
    path = tmp_path / "archive.sqlite"
    record = make_record()
    with Archive.open(path) as archive:
        archive.append(record, task)
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE records SET document = '{}'")
        with pytest.raises(ArchiveError, match=f"{path}: record {record.id[:12]} cannot be read"):
            list(archive.records())


@pytest.mark.parametrize("figure", ["NaN", "Infinity", "-Infinity", "0", "-2.0", "1e999"])
def test_a_figure_that_none_can_be_is_damage(tmp_path: Path, make_record: Make, task: Task, figure: str) -> None:
    path = tmp_path / "other.sqlite"
    record = make_record()
    with Archive.open(path) as other:
        other.append(record, task)
        with sqlite3.connect(path) as connection:
            swap = "UPDATE records SET document = replace(document, '\"speedup\":2.0', ?)"
            connection.execute(swap, (f'"speedup":{figure}',))
        with pytest.raises(ArchiveError, match=f"record {record.id[:12]} cannot be read: .*speedup"):
            list(other.records())
        with Archive.open(tmp_path / "own.sqlite") as own, pytest.raises(ArchiveError, match="speedup"):
            own.merge(other)


@pytest.mark.parametrize(("table", "said"), [("tasks", "task"), ("hack_cases", "hack case"), ("replies", "reply")])
def test_what_cannot_be_read_of_somebody_elses_archive_is_named(
    tmp_path: Path, make_record: Make, make_reply: Callable[..., Reply], task: Task, table: str, said: str
) -> None:
    path = tmp_path / "other.sqlite"
    with Archive.open(path) as other, Archive.open(tmp_path / "own.sqlite") as own:
        other.append(make_record(), task)
        other.hacks.add([HackCase(name="a", source="b", why="c")])
        other.replies.append(make_reply())
        with sqlite3.connect(path) as connection:
            connection.execute(f"UPDATE {table} SET document = '{{'")
        with pytest.raises(ArchiveError, match=f"{said} [0-9a-f]+ cannot be read"):
            own.merge(other)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_one_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="check the path and its permissions"):
        Archive.open(tmp_path / "deeper" / "archive.sqlite")


def test_a_file_in_the_way_of_the_folder_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="check the path and its permissions"):
        Archive.open(tmp_path / "file" / "archive.sqlite")


def test_a_disk_that_fills_while_folders_are_copied_is_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="the disk is full; free some space"), file_faults(tmp_path):
        raise shutil.Error([("a", "b", "[Errno 28] No space left on device: 'b'")])


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_stops_the_log_of_a_run(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, SearchSettings(task_sha="0" * 64))
    (run.path / "events.jsonl").symlink_to("/dev/full")
    with pytest.raises(InfrastructureError, match="free some space"):
        run.log("started")
