"""One device, one evaluation that times on it: other processes wait and say for whom."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from cuda_l1.errors import InfrastructureError
from cuda_l1.evaluator.lease import DeviceLease

HOLD = """
import sys, time
from pathlib import Path
from cuda_l1.evaluator.lease import DeviceLease
with DeviceLease(sys.argv[1], Path(sys.argv[2])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", HOLD, "cpu", str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_another_process_waits_until_the_holder_dies(tmp_path, holder):
    lines = []
    killer = threading.Timer(0.3, holder.kill)
    killer.start()
    start = time.monotonic()
    with DeviceLease("cpu", tmp_path, lines.append):
        assert time.monotonic() - start > 0.2
    killer.join()
    assert lines == [f"waiting for cpu: process {holder.pid} is timing on it"]


def test_another_device_is_free(tmp_path, holder):
    lines = []
    with DeviceLease("GPU-1", tmp_path, lines.append):
        assert lines == []


def test_waiting_can_be_interrupted_and_leaves_nothing_open(tmp_path, holder):
    before = len(os.listdir("/proc/self/fd"))
    timer = threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt), DeviceLease("cpu", tmp_path):
        pytest.fail("the lease was held by another process")
    timer.join()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_lease_can_be_taken_again(tmp_path):
    lease = DeviceLease("cpu", tmp_path)
    for _ in range(2):
        with lease:
            assert lease.path.read_text() == str(os.getpid())


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(InfrastructureError, match="the device lease cannot be taken"),
        DeviceLease("cpu", tmp_path / "file"),
    ):
        pass
