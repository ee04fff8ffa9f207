"""The sandbox as other users see it: a plain user, and a superuser whose interpreter everybody can read.

The guest scripts need only the standard library here, so the system's interpreter serves: unlike the one that runs the
tests, every user can read it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from cuda_l1.evaluator import guest
from cuda_l1.evaluator.guest import privileges, probe

SYSTEM_PYTHON = "/usr/bin/python3"
PLAIN_USER = 12345

pytestmark = [
    pytest.mark.skipif(os.getuid() != 0, reason="only a superuser can act as several users: run as root"),
    pytest.mark.skipif(not os.path.exists(SYSTEM_PYTHON), reason="no system interpreter: apt install python3"),
]


@pytest.fixture
def scripts():
    """A copy of the guest scripts that every user can read."""
    folder = Path(f"/tmp/cuda-l1-test-{os.getpid()}")
    shutil.copytree(Path(guest.__file__).parent, folder / "guest")
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def probe_as(user: int, scripts: Path) -> dict:
    code = f"import sys, json; sys.path.insert(0, {str(scripts)!r})\n"
    code += "from guest import probe; print(json.dumps(probe.probe()))"
    done = subprocess.run(
        [SYSTEM_PYTHON, "-I", "-c", code],
        user=user,
        group=user,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_plain_user_is_confined_without_privilege(scripts, refused):
    report = probe_as(PLAIN_USER, scripts)
    if "R1" in refused:
        pytest.skip(f"R1 is refused here: {refused['R1']}")
    assert report["rung"] in ("R1", "R2") and report["uid"] == PLAIN_USER
    if report["rung"] == "R1":
        assert report["raise"] and "R2" in report["refused"]


def test_a_superuser_gives_up_its_id_where_everybody_can_read_the_interpreter(scripts, refused):
    if "R1" in refused:
        pytest.skip(f"R1 is refused here: {refused['R1']}")
    assert probe_as(0, scripts)["uid"] == privileges.NOBODY


def test_what_is_open_to_all(scripts):
    folder = scripts / "folder"
    folder.mkdir()
    folder.chmod(0o755)
    (folder / "file").touch()
    (folder / "file").chmod(0o644)
    assert privileges.open_to_all([str(folder), str(folder / "file"), str(folder / "absent")])
    (folder / "file").chmod(0o600)
    assert not privileges.open_to_all([str(folder / "file")])
    folder.chmod(0o700)
    assert not privileges.open_to_all([str(folder)])
    assert not privileges.reachable_by_all(str(folder / "file"))


def test_the_probe_says_what_was_refused_and_what_raises_the_rung(monkeypatch):
    monkeypatch.setattr(probe, "_try_rung", lambda rung: {"uid": 7} if rung == "R1" else {"reason": "unshare: no"})
    report = probe.probe()
    assert report["rung"] == "R1" and report["refused"] == {"R2": "unshare: no"}
    assert report["raise"].startswith(("sudo sysctl", "docker run"))
    assert set(report["parts"]) >= {"landlock", "seccomp", "pid namespace", "user namespace"}


def test_a_part_that_is_refused_carries_its_reason():
    def refuse() -> str:
        raise OSError(1, "unshare: Operation not permitted")

    assert probe.in_child(refuse) == "unshare: Operation not permitted"
    assert probe.in_child(lambda: "ok") == "ok"


def test_a_fault_in_a_probe_is_reported_not_raised():
    assert probe.fork_and_ask(lambda: {"x": 1 // 0}) == {"reason": "the child died without a word"}
