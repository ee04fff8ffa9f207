"""Several processes at one archive: nothing is lost, and opening it at once is safe."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from cuda_l1.archive import Archive
from cuda_l1.types import Record, Task

APPEND_MANY = """
import sys
from conftest import TASK, make_candidate, make_evaluation
from cuda_l1.archive import Archive
from cuda_l1.types import Record

name, count = sys.argv[2], int(sys.argv[3])
with Archive.open(sys.argv[1]) as archive:
    for number in range(count):
        candidate = make_candidate(f"shared {number}" if number % 2 else f"{name} {number}")
        sequence = archive.next_sequence(name)
        archive.append(
            Record(run=name, sequence=sequence, candidate=candidate, evaluation=make_evaluation(candidate)), TASK
        )
        print(number, flush=True)
"""


def start(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", APPEND_MANY, str(path), name, str(count)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_processes_that_open_and_append_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    names = ["a", "b", "c", "d"]
    processes = [start(path, name, 40) for name in names]
    for process in processes:
        process.communicate(timeout=120)
    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    with Archive.open(path) as archive:
        for name in names:
            assert [record.sequence for record in archive.records(run=name)] == list(range(1, 41))
        assert len(list(archive.tasks())) == 1


def test_kill_9_while_appending_keeps_every_append_that_returned(
    tmp_path: Path, make_record: Callable[..., Record], task: Task
) -> None:
    path = tmp_path / "archive.sqlite"
    process = start(path, "killed", 100_000)
    assert process.stdout is not None
    for _ in range(20):
        process.stdout.readline()
    time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    returned = 20 + len(process.stdout.readlines())
    process.wait()
    process.stdout.close()
    with Archive.open(path) as archive:
        stored = [record.sequence for record in archive.records(run="killed")]
        assert stored == list(range(1, len(stored) + 1))
        assert returned <= len(stored) <= returned + 1
        archive.append(make_record(), task)
