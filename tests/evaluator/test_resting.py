"""Long checks are interrupted for those who wait to time, and go on as if nothing had been."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from evaluator_support import QUICK as BRIEF
from evaluator_support import candidate_of, task_of, text

from cuda_l1.config import EvaluatorSettings, Limits
from cuda_l1.evaluator import Evaluator
from cuda_l1.evaluator.environment import find_device
from cuda_l1.evaluator.lease import DeviceLease
from cuda_l1.types import Outcome

HELD_S = 1.5

SLOW = task_of(
    """
    import time

    class Model(nn.Module):
        def forward(self, x):
            time.sleep(0.06)
            return torch.relu(x)

    def get_inputs():
        return [torch.randn(8, 8)]
    """
)
QUICK = task_of(SLOW.source.removeprefix(text("")).replace("time.sleep(0.06)", "pass"))
RELU = """
    class ModelNew(nn.Module):
        def forward(self, x):
            return x.relu()
"""
COMPILES = """
    import time

    class ModelNew(nn.Module):
        def __init__(self):
            super().__init__()
            self.is_ready = False

        def forward(self, x):
            if not self.is_ready:
                for _ in range(int(20 * SECONDS)):  # each goes on while it is stopped, all together do not
                    time.sleep(0.05)
                self.is_ready = True
            return torch.relu(x)
"""


class Timing(threading.Thread):
    """Somebody who times from the moment at which a stage begins: has the device alone for `HELD_S`."""

    def __init__(self, cache_dir: str, stage: str, *, whole: bool = False, device: str = "cpu") -> None:
        super().__init__()
        cores = sorted(os.sched_getaffinity(0)) if device == "cpu" else ()
        self.lease = DeviceLease(find_device(device).lease_name, Path(cache_dir), whole=whole, cores=cores)
        self.stage, self.began, self.done = stage, threading.Event(), threading.Event()

    def hear(self, line: str) -> None:
        if line == self.stage:
            self.began.set()

    def run(self) -> None:
        self.began.wait(60.0)
        time.sleep(0.3)  # a stage may begin before it has its lease
        with self.lease:
            time.sleep(HELD_S)
        self.done.set()


@pytest.fixture(scope="module")
def patient(cache_dir):
    limits = Limits(first_call_s=0.5, verdict_s=60.0)  # a baseline has ten times that
    with Evaluator(EvaluatorSettings(device="cpu", cache_dir=cache_dir, limits=limits)) as opened:
        yield opened


def verified(evaluator, task, candidate, timing):
    timing.start()
    found = evaluator.verify(task, candidate, progress=timing.hear)
    was_there = timing.done.is_set()
    timing.began.set()
    timing.join(60.0)
    return found, was_there


def test_who_waits_to_time_does_not_wait_for_the_end_of_a_baselines_check(patient, cache_dir):
    timing = Timing(cache_dir, "check")
    found, was_there = verified(patient, SLOW, candidate_of(SLOW, RELU, proposer="baselines"), timing)
    assert found.outcome is Outcome.ACCEPTED, found.detail
    assert was_there, "it was timed before the check's end"
    assert found.stage_s["wait"] >= HELD_S
    assert found.stage_s["check"] < found.stage_s["total"] - HELD_S, "waiting is not checking"


@pytest.mark.gpu
@pytest.mark.parametrize(("task", "body"), [(SLOW, RELU), (QUICK, COMPILES.replace("SECONDS", "4.5"))])
def test_nor_on_a_gpu(cache_dir, task, body):
    """The evaluation goes on afterwards: a context that was stopped for a while is as good as before."""
    candidate = candidate_of(task, body, proposer="baselines")
    timing = Timing(cache_dir, "check", device="cuda")
    timing.start()
    with Evaluator(EvaluatorSettings(device="cuda", cache_dir=cache_dir)) as gpu:
        found = gpu.evaluate(task, candidate, protocol=BRIEF, progress=timing.hear)
    assert found.outcome is Outcome.ACCEPTED, found.detail
    assert timing.lease.waited_s < 4.4, "each takes longer than that"
    timing.join(60.0)


def test_a_tasks_examination_is_interrupted_too(patient, cache_dir):
    timing = Timing(cache_dir, "judge")
    timing.start()
    patient.audit(task_of(SLOW.source.removeprefix(text("")), name="examined"), progress=timing.hear)
    assert timing.done.is_set()
    timing.join(5.0)


def test_a_baseline_is_interrupted_while_it_compiles_and_its_deadline_with_it(patient, cache_dir):
    """5 s is what its first call may take; it takes 4, and is stopped for 1.5 of somebody's timing."""
    candidate = candidate_of(QUICK, COMPILES.replace("SECONDS", "4.0"), proposer="baselines")
    timing = Timing(cache_dir, "check")
    found, was_there = verified(patient, QUICK, candidate, timing)
    assert found.outcome is Outcome.ACCEPTED, found.detail
    assert was_there and timing.lease.waited_s < 3.9


def test_a_candidates_check_is_not(evaluator, cache_dir):
    """What it has begun on a device goes on when its processes are stopped."""
    found, was_there = verified(evaluator, SLOW, candidate_of(SLOW, RELU), Timing(cache_dir, "check"))
    assert found.outcome is Outcome.ACCEPTED, found.detail
    assert not was_there


def test_who_wants_the_device_whole_is_not_given_way_to(patient, cache_dir):
    candidate = candidate_of(SLOW, RELU, proposer="baselines")
    found, was_there = verified(patient, SLOW, candidate, Timing(cache_dir, "check", whole=True))
    assert found.outcome is Outcome.ACCEPTED, found.detail
    assert not was_there
