"""A disk that is full, and two evaluators on one device."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from faults_support import QUICK, TASK, candidate, judged, parent_of, settings

from cuda_l1.errors import InfrastructureError
from cuda_l1.evaluator import Evaluator, eager_candidate
from cuda_l1.types import Evaluation

pytestmark = pytest.mark.e2e

FULL = """
import ctypes, os, sys, tempfile
from pathlib import Path
from cuda_l1.evaluator.guest import namespaces, privileges

uid, gid = os.getuid(), os.getgid()
folder, cache = sys.argv[1:3]
try:
    if privileges.has_capability(privileges.CAP_SYS_ADMIN):
        namespaces.unshare("mounts", namespaces.NEW_MOUNT)
    else:
        namespaces.unshare("mounts", namespaces.NEW_USER | namespaces.NEW_MOUNT)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    namespaces._mount("private mounts", None, "/", None, namespaces._REC | namespaces._PRIVATE)
    namespaces._mount("small disk", "tmpfs", folder, "tmpfs", 0, "size=100m,mode=0755")
except OSError as error:
    print("refused", error)
    sys.exit(77)
os.environ["TMPDIR"] = tempfile.tempdir = folder

from cuda_l1.errors import InfrastructureError
from cuda_l1.evaluator import Evaluator, eager_candidate
from faults_support import QUICK, TASK, candidate, settings

writer = candidate("open('part', 'wb').write(bytes(1 << 20))")
filler = Path(folder, "filler")

def fill(leave):
    with filler.open("wb") as file:
        while (free := os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize) > leave:
            file.write(bytes(min(1 << 20, free - leave)))
            file.flush()

with Evaluator(settings(Path(cache))) as evaluator:
    def verdict(made):
        try:
            return evaluator.evaluate(TASK, made, protocol=QUICK).outcome
        except InfrastructureError as error:
            return str(error)

    print("room:", verdict(writer))
    for leave in (256 << 10, 0):
        fill(leave)
        print("full:", verdict(writer))
        filler.unlink()
        print("room:", verdict(eager_candidate(TASK)))
    fill(0)
try:
    Evaluator(settings(Path(folder, "cache")))
except InfrastructureError as error:
    print("cache:", error)
filler.unlink()
os.rmdir(Path(folder, "cache"))
print("left:", os.listdir(folder))
"""


def test_a_full_disk_is_no_candidates_fault(tmp_path):
    folder, cache = tmp_path / "small", tmp_path / "cache"
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), str(Path(__file__).parent)])}
    command = [sys.executable, "-c", FULL, str(folder), str(cache)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    if done.returncode == 77:
        pytest.skip(f"no small disk can be mounted here: {done.stdout.strip()}")
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("room")] == ["room: ACCEPTED"] * 3, (lines, done.stderr)
    full = [line for line in lines if line.startswith("full")]
    assert len(full) == 2 and all("make room" in line and "\n" not in line for line in full), lines
    (cache_full,) = [line for line in lines if line.startswith("cache")]
    assert cache_full.endswith(
        "small/cache cannot be written to: No space left on device; make room there, or name another by XDG_CACHE_HOME"
    )
    assert lines[-1] == "left: []"


def test_a_full_cache_is_said_at_once(tmp_path, monkeypatch):
    """By whoever began when there was room, too: the compiler would be asked in vain what it can do."""

    def full_disk(**_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with parent_of(settings(tmp_path)) as parent:
        monkeypatch.setattr("tempfile.TemporaryFile", full_disk)
        heard: list[str] = []
        with pytest.raises(InfrastructureError) as caught:
            judged(parent, said=heard.append)
    told = (
        f"the cache folder {tmp_path} cannot be written to: No space left on device; make room there, or name another"
    )
    assert str(caught.value) == f"{told} by XDG_CACHE_HOME" and heard == []


def test_two_evaluators_on_one_device_wait_for_each_other(tmp_path):
    """The first one's timed calls last; the second comes meanwhile, says for whom it waits, and both are right."""
    timing, waited = threading.Event(), []
    results: dict[str, Evaluation] = {}
    slow = candidate("time.sleep(0.1)")

    def ask(name: str, made, hear) -> None:
        with Evaluator(settings(tmp_path)) as evaluator:
            if name == "second":
                assert timing.wait(60)
            else:
                pids.append(evaluator.pid)
            results[name] = evaluator.evaluate(TASK, made, protocol=QUICK, progress=hear)

    pids: list[int] = []
    others = [
        threading.Thread(target=ask, args=("first", slow, lambda said: said == "time" and timing.set())),
        threading.Thread(target=ask, args=("second", eager_candidate(TASK), waited.append)),
    ]
    for thread in others:
        thread.start()
    for thread in others:
        thread.join()
    assert results["first"].accepted and results["second"].accepted
    assert any(re.fullmatch(rf"waiting for cpu core \d+: process {pids[0]} is timing on it", line) for line in waited)
