"""What a killed parent or client leaves: no process, and no folder for longer than until the next evaluator starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from faults_support import TASK, candidate, gone, judged, parent_of, settings

from cuda_l1.evaluator import work_folders
from cuda_l1.evaluator.build_cache import BuildCache
from cuda_l1.evaluator.environment import usable_cores
from cuda_l1.evaluator.guest import group
from cuda_l1.evaluator.lease import DeviceLease
from cuda_l1.evaluator.work_folders import PREFIX, WorkFolder
from waiting import eventually

HOLD = """
import os, sys
from cuda_l1.evaluator.work_folders import WorkFolder
folder = WorkFolder.create()
(folder.path / "runner-1" / "tmp").mkdir(parents=True)
(folder.path / "runner-1" / "candidate.py").write_text("x")
(folder.path / "runner-1" / "link").symlink_to("/")
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of the test's own, for this process and those that it starts."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def holder() -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ
    )
    assert process.stdout
    return process, Path(process.stdout.readline().strip())


def test_the_folder_of_a_living_process_stays_and_that_of_a_dead_one_goes(temporary):
    process, folder = holder()
    assert folder.parent == temporary and work_folders.sweep() == [] and (folder / "runner-1" / "link").exists()
    process.kill()
    process.communicate()
    assert work_folders.sweep() == [folder] and not folder.exists() and Path("/usr").is_dir()
    assert work_folders.sweep() == []


def test_only_folders_that_an_evaluator_made_are_removed(temporary):
    (temporary / f"{PREFIX}results").mkdir()
    (temporary / f"{PREFIX}results" / "precious").touch()
    (temporary / "other").mkdir()
    (temporary / "other" / ".held-by-an-evaluator").touch()
    (temporary / f"{PREFIX}link").symlink_to(temporary / "other")
    (temporary / f"{PREFIX}file").touch()
    (temporary / f"{PREFIX}linked-lock").mkdir()
    (temporary / f"{PREFIX}linked-lock" / ".held-by-an-evaluator").symlink_to(temporary / "other")
    before = sorted(temporary.rglob("*"))
    assert work_folders.sweep() == [] and sorted(temporary.rglob("*")) == before


def test_a_folder_that_is_held_can_be_removed_twice_and_holds_nothing_open(temporary):
    before = len(os.listdir("/proc/self/fd"))
    folders = [WorkFolder.create() for _ in range(3)]
    (folders[0].path / "file").write_text("x")
    assert work_folders.sweep() == []
    for folder in [*folders, *folders]:
        folder.remove()
    assert list(temporary.iterdir()) == [] and len(os.listdir("/proc/self/fd")) == before


def test_a_folder_of_another_user_stays(temporary, monkeypatch):
    process, folder = holder()
    process.kill()
    process.communicate()
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    assert work_folders.sweep() == [] and folder.exists()


def test_copies_that_a_killed_process_began_are_removed_from_the_build_cache(tmp_path):
    for name in (".new-old", ".old-old", ".new-fresh", "an-entry"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
        if not name.endswith("fresh"):
            os.utime(tmp_path / name, (1e9, 1e9))
    BuildCache(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".new-fresh", "an-entry"]


CLIENT = """
import sys
from cuda_l1.config import EvaluatorSettings
from cuda_l1.evaluator import Evaluator
from cuda_l1.types import Candidate, Task
task, candidate = Task.model_validate_json(sys.argv[2]), Candidate.model_validate_json(sys.argv[3])
with Evaluator(EvaluatorSettings(device="cpu", cache_dir=sys.argv[1])) as evaluator:
    print(evaluator.pid, flush=True)
    evaluator.evaluate(task, candidate, progress=lambda text: print(text, flush=True))
"""


def client(cache: Path, before: str = "pass") -> tuple[subprocess.Popen[str], int]:
    """A process that asks for a verdict, and the process id of its evaluator's parent."""
    texts = [value.model_dump_json(exclude={"sha", "id"}) for value in (TASK, candidate(before))]
    command = [sys.executable, "-c", CLIENT, str(cache), *texts]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
    assert process.stdout
    return process, int(process.stdout.readline())


def said(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdout
    assert any(line.startswith(text) for line in process.stdout)


@pytest.mark.e2e
def test_a_killed_client_takes_everything_along_even_from_the_queue_for_the_device(tmp_path, temporary):
    with DeviceLease("cpu", tmp_path, cores=usable_cores()[:1]):
        process, parent = client(tmp_path)
        said(process, "waiting for cpu")
        everything = [parent, *group.descendants(parent)]
        process.kill()
        assert gone(everything) and len(everything) >= 2
    assert eventually(lambda: not list(temporary.iterdir())), "a parent whose client died leaves in order"
    process.communicate()


@pytest.mark.e2e
def test_a_killed_parent_leaves_no_process_and_its_folder_goes_with_the_next_evaluator(tmp_path, temporary):
    process, parent = client(tmp_path, "time.sleep(30)")
    said(process, "check")
    everything = group.descendants(parent)
    os.kill(parent, signal.SIGKILL)
    assert gone(everything) and len(everything) > 3
    assert process.wait(10) == 1, "the client is told"
    left = list(temporary.iterdir())
    assert len(left) == 1
    with parent_of(settings(tmp_path)) as own:
        assert not left[0].exists() and judged(own).accepted
    assert not list(temporary.iterdir())
    process.communicate()


@pytest.mark.e2e
def test_a_parent_that_is_asked_to_end_leaves_in_order(tmp_path, temporary):
    process, parent = client(tmp_path, "time.sleep(30)")
    said(process, "check")
    everything = [parent, *group.descendants(parent)]
    os.kill(parent, signal.SIGTERM)
    assert process.wait(10) == 1 and gone(everything) and not list(temporary.iterdir())
    process.communicate()
