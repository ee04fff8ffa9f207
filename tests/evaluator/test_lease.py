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
            assert lease.paths[0].read_text() == str(os.getpid())


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(InfrastructureError, match="the device lease cannot be taken"),
        DeviceLease("cpu", tmp_path / "file"),
    ):
        pass


def test_work_that_is_not_timed_shares_the_device(tmp_path):
    with DeviceLease("cpu", tmp_path, shared=True), DeviceLease("cpu", tmp_path, shared=True) as other:
        assert other.waited_s < 0.5 and other.is_free()
        waiting = threading.Thread(target=take, args=[DeviceLease("cpu", tmp_path)])
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive(), "nobody is timed beside other work"
    waiting.join(5.0)
    assert not waiting.is_alive()


def test_who_waits_to_time_goes_before_later_work(tmp_path):
    order: list[str] = []
    with DeviceLease("cpu", tmp_path, shared=True) as lease:
        threads = []
        for name, shared in (("timing", False), ("later", True)):
            lease_of_its_own = DeviceLease("cpu", tmp_path, shared=shared)
            threads.append(threading.Thread(target=take, args=[lease_of_its_own, order, name]))
            threads[-1].start()
            while lease.is_free():
                time.sleep(0.01)
            time.sleep(0.1)
        assert order == []
    for thread in threads:
        thread.join(5.0)
    assert order == ["timing", "later"]


def test_all_who_wait_to_time_go_before_any_check(tmp_path):
    """Else each of those who time would wait for one more check."""
    order: list[str] = []
    threads = []
    with DeviceLease("cpu", tmp_path):
        for name, shared in (("timing", False), ("check", True), ("timing", False), ("check", True), ("timing", False)):
            lines: list[str] = []
            lease = DeviceLease("cpu", tmp_path, lines.append, shared=shared)
            threads.append(threading.Thread(target=take, args=[lease, order, name]))
            threads[-1].start()
            while not lines:
                time.sleep(0.01)
        time.sleep(0.1)
    for thread in threads:
        thread.join(5.0)
    assert order == ["timing"] * 3 + ["check"] * 2


def test_a_held_device_is_not_free(tmp_path, holder):
    assert not DeviceLease("cpu", tmp_path).is_free()


def take(lease, order=None, name=""):
    with lease:
        if order is not None:
            order.append(name)


def test_whether_others_were_there(tmp_path):
    with DeviceLease("cpu", tmp_path, shared=True) as lone:
        assert not lone.has_company()
    with DeviceLease("cpu", tmp_path, shared=True) as first, DeviceLease("cpu", tmp_path, shared=True) as second:
        assert second.has_company() and first.has_company()
    with DeviceLease("cpu", tmp_path, shared=True) as first:
        waiting = threading.Thread(target=take, args=[DeviceLease("cpu", tmp_path)])
        waiting.start()
        while first.is_free():
            time.sleep(0.01)
        assert first.has_company(), "one that waits to time has been working"
    waiting.join(5.0)
    with DeviceLease("cpu", tmp_path) as alone:
        assert not alone.has_company()


def test_disjoint_cores_never_meet(tmp_path):
    with DeviceLease("cpu", tmp_path, cores=(0,)), DeviceLease("cpu", tmp_path, cores=(2, 1)) as second:
        assert second.waited_s < 0.5 and not second.has_company()
        assert DeviceLease("cpu", tmp_path, cores=(3, 4)).is_free()
        assert not DeviceLease("cpu", tmp_path, cores=(1,), shared=True).is_free()


def test_who_times_on_all_cores_waits_for_every_lane_and_goes_before_later_work(tmp_path):
    order, lines = [], []
    whole = DeviceLease("cpu", tmp_path, lines.append, cores=range(3))
    first, second = (DeviceLease("cpu", tmp_path, cores=(core,)) for core in (0, 2))
    first.__enter__()
    second.__enter__()
    threads = [threading.Thread(target=take, args=[whole, order, "all"])]
    threads[0].start()
    while not lines:
        time.sleep(0.01)
    for core in (0, 1, 2):  # core 1 is free, and kept for the one who was there before
        later = DeviceLease("cpu", tmp_path, lines.append, shared=True, cores=(core,))
        threads.append(threading.Thread(target=take, args=[later, order, "lane"]))
        threads[-1].start()
    while len(lines) < 4:
        time.sleep(0.01)
    first.__exit__()
    threads[0].join(0.2)
    assert threads[0].is_alive() and order == [], "the other lane is still timing"
    second.__exit__()
    for thread in threads:
        thread.join(5.0)
    assert order == ["all", "lane", "lane", "lane"]
    assert lines[0] == f"waiting for cpu core 0: process {os.getpid()} is timing on it"


def test_nobody_waits_in_a_circle(tmp_path):
    """Lanes that overlap each way, named in different orders, some to time and some to check."""
    lanes = [(0, 1), (1, 2), (2, 0), (2, 1, 0), (1,), (0, 2)]
    taken = []

    def again_and_again(lane, shared):
        for _ in range(30):
            with DeviceLease("cpu", tmp_path, shared=shared, cores=lane):
                taken.append(lane)

    threads = [
        threading.Thread(target=again_and_again, args=[lane, shared], daemon=True)
        for lane in lanes
        for shared in (False, True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30.0)
    assert len(taken) == 30 * len(threads)


def test_no_two_time_on_one_core_at_a_time(tmp_path):
    busy, clashes = set(), []
    guard = threading.Lock()

    def times(lane):
        for _ in range(20):
            with DeviceLease("cpu", tmp_path, cores=lane):
                with guard:
                    clashes.extend(busy & set(lane))
                    busy.update(lane)
                time.sleep(0.001)
                with guard:
                    busy.difference_update(lane)

    threads = [threading.Thread(target=times, args=[lane]) for lane in ((0, 1), (1, 2), (0, 1, 2), (2,))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30.0)
    assert clashes == []


def test_one_core_in_company_is_company(tmp_path):
    with DeviceLease("cpu", tmp_path, shared=True, cores=(0, 1)) as wide:
        with DeviceLease("cpu", tmp_path, shared=True, cores=(1,)) as narrow:
            assert narrow.has_company()
        assert not wide.has_company(), "who came and went is not there at the end"
    first, second = (DeviceLease("cpu", tmp_path, shared=True, cores=cores) for cores in ((0, 1), (1, 2)))
    with first, second:
        assert first.has_company()


def test_an_interrupted_wait_for_many_cores_leaves_nothing_open(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    with DeviceLease("cpu", tmp_path, cores=(7,)):
        timer = threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT])
        timer.start()
        with pytest.raises(KeyboardInterrupt), DeviceLease("cpu", tmp_path, cores=range(16)):
            pytest.fail("one of the cores was held")
        timer.join()
        assert DeviceLease("cpu", tmp_path, cores=range(7)).is_free()
    assert len(os.listdir("/proc/self/fd")) == before


def test_shared_work_gives_way_and_goes_on_when_all_have_timed(tmp_path):
    order: list[str] = []
    with DeviceLease("cpu", tmp_path, shared=True) as lease:
        assert not lease.is_wanted()
        waiting = threading.Thread(target=take, args=[DeviceLease("cpu", tmp_path), order, "timing"])
        waiting.start()
        while not lease.is_wanted():
            time.sleep(0.01)
        lease.give_way()
        order.append("checking")
        assert not lease.is_wanted() and lease.has_company(), "a time limit that it missed is not its own doing"
    waiting.join(5.0)
    assert order == ["timing", "checking"]


def test_nobody_gives_way_to_who_wants_the_device_whole(tmp_path):
    order: list[str] = []
    with DeviceLease("cpu", tmp_path, shared=True) as lease:
        whole = DeviceLease("cpu", tmp_path, whole=True)
        waiting = threading.Thread(target=take, args=[whole, order, "whole"])
        waiting.start()
        while lease.is_free():
            time.sleep(0.01)
        assert not lease.is_wanted()
    waiting.join(5.0)
    assert order == ["whole"]


def test_who_wants_the_device_whole_waits_for_those_who_rest(tmp_path):
    """They are in the middle of something, whoever else times meanwhile."""
    order: list[str] = []
    go, threads = threading.Event(), []

    def time_until_told():
        with DeviceLease("cpu", tmp_path):
            go.wait(10.0)
            order.append("timing")

    with DeviceLease("cpu", tmp_path, shared=True) as lease:
        threads.append(threading.Thread(target=time_until_told))
        threads[0].start()
        while not lease.is_wanted():
            time.sleep(0.01)
        threads.append(threading.Thread(target=lambda: (lease.give_way(), order.append("resting"))))
        threads[1].start()
        while not DeviceLease("cpu", tmp_path, shared=True).is_wanted():
            time.sleep(0.01)
        time.sleep(0.2)  # by now the one rests and the other times
        threads.append(threading.Thread(target=take, args=[DeviceLease("cpu", tmp_path, whole=True), order, "whole"]))
        threads[2].start()
        time.sleep(0.2)
        go.set()
        for thread in threads[:2]:
            thread.join(10.0)
        assert order == ["timing", "resting"]
    threads[2].join(10.0)
    assert order == ["timing", "resting", "whole"]
