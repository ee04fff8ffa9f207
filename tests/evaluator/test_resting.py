"""Long checks are interrupted for those who wait to time, and go on as if nothing had been."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from evaluator_support import candidate_of, task_of, text

from cuda_l1.config import EvaluatorSettings, Limits
from cuda_l1.evaluator import Evaluator
from cuda_l1.evaluator.lease import DeviceLease
from cuda_l1.types import Outcome

HELD_S = 3.0

SLOW = task_of(
    """
    import time

    class Model(nn.Module):
        def forward(self, x):
            time.sleep(0.1)
            return torch.relu(x)

    def get_inputs():
        return [torch.randn(8, 8)]
    """
)
QUICK = task_of(SLOW.source.removeprefix(text("")).replace("time.sleep(0.1)", "pass"))
COMPILES = """
    import time

    class ModelNew(nn.Module):
        def __init__(self):
            super().__init__()
            self.is_ready = False

        def forward(self, x):
            if not self.is_ready:
                time.sleep(SECONDS)
                self.is_ready = True
            return torch.relu(x)
"""


class Timing(threading.Thread):
    """Somebody who times from the moment at which a stage begins: has the device alone for `HELD_S`."""

    def __init__(self, cache_dir: str, stage: str, *, whole: bool = False) -> None:
        super().__init__()
        cores = sorted(os.sched_getaffinity(0))
        self.lease = DeviceLease("cpu", Path(cache_dir), whole=whole, cores=cores)
        self.stage, self.began, self.done = stage, threading.Event(), threading.Event()

    def hear(self, line: str) -> None:
        if line == self.stage:
            self.began.set()

    def run(self) -> None:
        self.began.wait(60.0)
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


def test_who_waits_to_time_does_not_wait_for_the_end_of_a_check(patient, cache_dir):
    candidate = candidate_of(SLOW, "class ModelNew(nn.Module):\n    def forward(self, x):\n        return x.relu()")
    timing = Timing(cache_dir, "check")
    found, was_there = verified(patient, SLOW, candidate, timing)
    assert found.outcome is Outcome.ACCEPTED, found.detail
    assert was_there, "it was timed before the check's end"
    assert timing.lease.waited_s < 3.0
    assert found.stage_s["wait"] >= HELD_S
    assert found.stage_s["check"] < found.stage_s["total"] - HELD_S, "waiting is not checking"


def test_a_tasks_examination_is_interrupted_too(patient, cache_dir):
    timing = Timing(cache_dir, "judge")
    timing.start()
    patient.audit(task_of(SLOW.source.removeprefix(text("")), name="examined"), progress=timing.hear)
    assert timing.done.is_set()
    timing.join(5.0)


def test_a_baseline_is_interrupted_while_it_compiles_and_its_deadline_with_it(patient, cache_dir):
    """5 s is what its first call may take; it takes 4.5, and is stopped for 3 of somebody's timing."""
    candidate = candidate_of(QUICK, COMPILES.replace("SECONDS", "4.5"), proposer="baselines")
    timing = Timing(cache_dir, "check")
    found, was_there = verified(patient, QUICK, candidate, timing)
    assert found.outcome is Outcome.ACCEPTED, found.detail
    assert was_there and timing.lease.waited_s < 4.0


def test_a_candidates_own_call_is_not(evaluator, cache_dir):
    """What it has begun on a device goes on when its processes are stopped."""
    candidate = candidate_of(QUICK, COMPILES.replace("SECONDS", "3"))
    timing = Timing(cache_dir, "check")
    found, _ = verified(evaluator, QUICK, candidate, timing)
    assert found.outcome is Outcome.ACCEPTED, found.detail
    assert timing.lease.waited_s > 2.5


def test_who_wants_the_device_whole_is_not_given_way_to(patient, cache_dir):
    candidate = candidate_of(SLOW, "class ModelNew(nn.Module):\n    def forward(self, x):\n        return x * (x > 0)")
    found, was_there = verified(patient, SLOW, candidate, Timing(cache_dir, "check", whole=True))
    assert found.outcome is Outcome.ACCEPTED, found.detail
    assert not was_there
