"""A device that is lost, hangs or runs out of memory, by a fault put where the device is asked: right outcome or one
clear line, the device tested again, in quarantine while it fails, and the next verdict correct."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from faults_support import GRACE_S, SHORT, TASK, candidate, gone, judged, parent_of, settings

from cuda_l1.errors import InfrastructureError, NoRoomError
from cuda_l1.evaluator import bench, eager_candidate, guests
from cuda_l1.evaluator.bench import Bench
from cuda_l1.evaluator.deaths import failure_of
from cuda_l1.evaluator.environment import usable_cores
from cuda_l1.evaluator.failures import DeviceMemoryShort, Failure, Late, TaskFault
from cuda_l1.evaluator.guest import group
from cuda_l1.evaluator.judge import Judge
from cuda_l1.evaluator.lease import DeviceLease
from cuda_l1.evaluator.machine_faults import Quarantined
from cuda_l1.evaluator.quarantine import Quarantine
from cuda_l1.types import Outcome
from waiting import eventually

LOST = "the judge died during `{}`: CUDA error: no CUDA-capable device is detected"


class Broken:
    """Fails the judge's operations named in `ops` by raising `error`, `times` times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: InfrastructureError, *ops: str, times: int = 1000):
        self.left, asked = times, Judge.ask
        self.seen: list[str] = []

        def ask(one: Judge, message: dict, *more: object, **fields: object) -> dict:
            self.seen.append(message["op"])
            if message["op"] in ops and self.left > 0:
                self.left -= 1
                raise error
            return asked(one, message, *more, **fields)

        monkeypatch.setattr(Judge, "ask", ask)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def parent(cache: Path):
    with parent_of(settings(cache)) as made:
        yield made


pytestmark = pytest.mark.e2e


def test_a_lost_device_is_in_quarantine_until_a_known_good_candidate_passes(parent, cache, monkeypatch):
    mark = Quarantine("cpu", cache)
    with monkeypatch.context() as patch:
        Broken(patch, InfrastructureError(LOST.format("check")), "check", "warm")
        with pytest.raises(Quarantined, match=r"no CUDA-capable device.*a known-good candidate fails too.*quarantine"):
            judged(parent)
        reason = mark.reason()
        assert reason is not None and reason.startswith("since 20") and "no CUDA-capable" in reason
        with pytest.raises(Quarantined, match="in quarantine since") as again:
            judged(parent)
        assert mark.reason() == reason, "the first reason stays"
        assert str(again.value).count("a known-good candidate fails too") == 1
    said: list[str] = []
    assert judged(parent, said=said.append).accepted
    assert said[0].startswith("testing cpu, in quarantine") and mark.reason() is None
    said.clear()
    assert judged(parent, said=said.append).accepted and said[0] == "build"


def test_a_device_that_comes_back_costs_one_retry(parent, cache, monkeypatch):
    said: list[str] = []
    Broken(monkeypatch, InfrastructureError(LOST.format("block")), "block", times=1)
    assert judged(parent, said=said.append).accepted
    assert sum(text.startswith("fault of the machine") for text in said) == 1
    assert Quarantine("cpu", cache).reason() is None


def test_after_a_crash_the_device_is_asked_and_unused_runners_are_fresh(parent, monkeypatch):
    parent.idle()
    seen = Broken(monkeypatch, Late("never")).seen
    old = {runner.pid for runner in parent.bench._spare}
    assert judged(parent, candidate("raise ValueError('x')")).outcome is Outcome.CRASHED
    assert seen[-1] == "greet" and "probe" in seen
    fresh = {runner.pid for runner in parent.bench._spare}
    assert fresh and not fresh & old
    seen.clear()
    assert judged(parent, candidate("x = x + 1")).outcome is Outcome.WRONG_VALUES and "probe" not in seen


def test_a_judge_that_a_crash_took_along_is_replaced_and_the_outcome_stands(parent, cache, monkeypatch):
    broken = Broken(monkeypatch, InfrastructureError("the judge died during `probe`: an illegal access"), "probe")
    assert judged(parent, candidate("os._exit(1)")).outcome is Outcome.CRASHED
    after = broken.seen[broken.seen.index("probe") :]
    assert after.count("warm") == 1, "the known-good candidate has a judge of its own"
    assert Quarantine("cpu", cache).reason() is None and judged(parent).accepted


def test_a_device_that_hangs_after_a_candidate_is_in_quarantine_at_once(parent, cache, monkeypatch):
    with monkeypatch.context() as patch:
        Broken(patch, Late("the judge did not finish `probe`"), "probe")
        begin = time.monotonic()
        with pytest.raises(Quarantined, match=r"does not answer after the first call took longer than 2\.0 s"):
            judged(parent, candidate("time.sleep(60)"))
        assert time.monotonic() - begin < SHORT.first_call_s + GRACE_S
        assert Quarantine("cpu", cache).reason()
    assert judged(parent).accepted


def test_device_memory_that_only_this_candidate_leaves_short_is_its_outcome(parent, monkeypatch):
    check = Bench.ask

    def ask(self: Bench, runner: bench.Runner, op: str, *more: object, **fields: object) -> dict:
        if op == "check" and runner.loaded == greedy:
            raise DeviceMemoryShort("the judge ran out of device memory: tried to allocate 2 GiB")
        return check(self, runner, op, *more, **fields)

    greedy = candidate("x = x.clone()")
    monkeypatch.setattr(Bench, "ask", ask)
    result = judged(parent, greedy)
    assert result.outcome is Outcome.OUT_OF_MEMORY and "2 GiB, 2 times with this candidate" in result.detail


def test_a_reference_that_does_not_fit_is_no_candidate_that_ran_out_of_memory(parent, monkeypatch):
    check = Bench.ask

    def ask(self: Bench, runner: bench.Runner, op: str, *more: object, **fields: object) -> dict:
        if op == "check" and runner.loaded == eager:
            raise DeviceMemoryShort("the judge ran out of device memory: tried to allocate 2 GiB")
        return check(self, runner, op, *more, **fields)

    eager = eager_candidate(TASK)
    monkeypatch.setattr(Bench, "ask", ask)
    with pytest.raises(NoRoomError, match=r"does not fit the device: the judge ran out of device memory: .* 2 GiB"):
        judged(parent, eager)


def test_memory_that_others_may_have_taken_is_asked_for_once_more_alone(parent, cache, monkeypatch):
    """Several evaluators check on one device at the same time; what one of them takes must not be another's outcome."""
    check, others = Bench.ask, []

    def ask(self: Bench, runner: bench.Runner, op: str, *more: object, **fields: object) -> dict:
        if op == "check":
            others.append(DeviceLease("cpu", cache, shared=True, cores=usable_cores()).is_free())
            if len(others) == 1:
                raise Failure(Outcome.OUT_OF_MEMORY, "CUDA out of memory", contested=True)
        return check(self, runner, op, *more, **fields)

    monkeypatch.setattr(Bench, "ask", ask)
    said: list[str] = []
    assert judged(parent, said=said.append).accepted and others == [True, False]
    assert "once more, alone on the device: CUDA out of memory" in said


@pytest.mark.parametrize("short", [
    Failure(Outcome.OUT_OF_MEMORY, "CUDA out of memory", contested=True),
    DeviceMemoryShort("the judge ran out of device memory"),
])  # fmt: skip
def test_a_verdict_that_need_not_be_had_beside_others_does_not_make_them_wait(parent, short, monkeypatch):
    asked: list[str] = []

    def ask(self: Bench, runner: bench.Runner, op: str, *more: object, **fields: object) -> dict:
        asked.append(op)
        raise short

    with monkeypatch.context() as patch:
        patch.setattr(Bench, "ask", ask)
        with pytest.raises(NoRoomError, match=f"{TASK.id}: not beside other evaluators: .* of .*memory"):
            judged(parent, beside_others=True)
    assert asked == ["load"] and parent.bench.task_sha is None, "asked once, and what its judge held is given back"
    assert judged(parent, beside_others=True).accepted


def test_a_judge_that_finds_no_room_beside_other_evaluators_is_no_crash(parent, monkeypatch):
    parent.bench.close()  # the judge of an earlier test has the task open
    answered = Judge.ask

    def ask(self: Judge, message: dict, *more: object, **fields: object) -> dict:
        reply = answered(self, message, *more, **fields)
        return {"memory": "CUDA out of memory"} if message["op"] == "warm" else reply

    with monkeypatch.context() as patch:
        patch.setattr(Judge, "ask", ask)
        with pytest.raises(NoRoomError, match=r"not beside other evaluators: .* out of device memory"):
            judged(parent, beside_others=True)
    assert judged(parent, beside_others=True).accepted


def test_a_device_whose_memory_another_program_holds_is_not_in_quarantine(parent, cache, monkeypatch):
    with monkeypatch.context() as patch:
        Broken(patch, DeviceMemoryShort("the judge ran out of device memory"), "check", "warm")
        with pytest.raises(InfrastructureError, match="known-good candidate runs out of memory too") as error:
            judged(parent)
        assert not isinstance(error.value, Quarantined)
    assert Quarantine("cpu", cache).reason() is None and judged(parent).accepted


def test_a_process_that_cannot_be_killed_is_a_broken_device(parent, cache, monkeypatch):
    """A stopped keeper stands for a driver that holds a process: nobody carries out the order to kill it."""
    monkeypatch.setattr(guests, "_KILL_S", 0.3)
    stopped: list[int] = []

    def stop_keeper(said: str) -> None:
        if said == "check" and not stopped:
            runner = next(iter(own.bench._runners.values()))
            stopped.append(group.parent_of(runner.pid))  # type: ignore[arg-type]
            os.kill(stopped[0], signal.SIGSTOP)

    with parent_of(settings(cache)) as own:
        begin = time.monotonic()
        with pytest.raises(Quarantined, match="runner cannot be killed"):
            judged(own, candidate("time.sleep(60)"), said=stop_keeper)
        assert time.monotonic() - begin < SHORT.first_call_s + GRACE_S
        below = [stopped[0], *group.descendants(stopped[0])]
        assert len(below) == 2
    os.kill(stopped[0], signal.SIGCONT)
    assert gone(below)
    assert judged(parent).accepted and Quarantine("cpu", cache).reason() is None


def test_what_cuda_says_of_a_lost_device_is_no_candidates_crash():
    """And what it says of an illegal access is."""
    guest: Any = SimpleNamespace(log_tail=lambda size: "", exit=None)

    def found(text: str, outcome: str = "CRASHED") -> Failure:
        return failure_of(guest, {"outcome": outcome, "stage": "a call", "detail": text}, on_gpu=True, rung="R2")

    for text in (
        "CUDA error: CUDA-capable device(s) is/are busy or unavailable",
        "uncorrectable ECC error encountered",
    ):
        with pytest.raises(InfrastructureError, match="the device is lost"):
            found(f"AcceleratorError: {text}")
    crashed = found("AcceleratorError: CUDA error: an illegal memory access was encountered")
    assert crashed.outcome is Outcome.CRASHED and not crashed.contested
    assert found("CUDA out of memory", "OUT_OF_MEMORY").contested


def test_a_mark_without_words_is_a_mark(tmp_path):
    mark = Quarantine("GPU-1/2", tmp_path)
    assert mark.reason() is None
    mark.lift()
    mark.impose("two\nlines")
    assert mark.reason() and "two lines" in mark.reason() and mark.path.parent == tmp_path / "quarantine"
    mark.path.write_text("")
    assert mark.reason() == "no reason given"
    assert eventually(lambda: (mark.lift(), mark.reason() is None)[1], 1.0)
    assert issubclass(TaskFault, InfrastructureError)
