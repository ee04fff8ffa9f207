"""The trials of a verdict on tasks that a candidate was not written for: nothing is timed, and its own caches stay."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from evaluator_support import LINEAR, candidate_of, task_of

from cuda_l1.config import EvaluatorSettings, Limits
from cuda_l1.errors import TaskError
from cuda_l1.evaluator import Evaluator
from cuda_l1.evaluator.environment import usable_cores
from cuda_l1.evaluator.lease import DeviceLease
from cuda_l1.types import Outcome

pytestmark = pytest.mark.e2e

OTHER_ROWS = LINEAR.replace("16, 32", "7, 32")
ONLY_16 = LINEAR.replace("class Model(", "class ModelNew(").replace(
    "torch.relu(self.linear(x))", "torch.relu(self.linear(x))[:16] if len(x) == 16 else torch.zeros(len(x), 32)"
)


def test_another_size_is_judged_by_the_reference_at_that_size(evaluator):
    own = task_of(LINEAR)
    candidate = candidate_of(own, ONLY_16)
    right, wrong = (evaluator.verify(task, candidate) for task in (own, task_of(OTHER_ROWS)))
    assert right.outcome is Outcome.ACCEPTED and right.precision_class == "fp32", right.detail
    assert wrong.outcome is Outcome.WRONG_VALUES and "errs by" in wrong.detail
    assert wrong.candidate_id == candidate.id and wrong.task_sha != candidate.task_sha
    assert "time" not in right.stage_s and "check" in right.stage_s


def test_a_size_that_the_reference_refuses_is_the_tasks_affair(evaluator):
    own = task_of(LINEAR)
    with pytest.raises(TaskError, match="forward raised: RuntimeError"):
        evaluator.verify(task_of(LINEAR.replace("16, 32", "16, 31")), candidate_of(own, ONLY_16))


def test_it_runs_beside_other_checks_and_waits_for_who_times(cache_dir, evaluator):
    own = task_of(LINEAR)
    folder = Path(cache_dir)
    done = []
    with DeviceLease("cpu", folder, shared=True, cores=usable_cores()):
        assert evaluator.verify(own, candidate_of(own, ONLY_16)).outcome is Outcome.ACCEPTED
    with DeviceLease("cpu", folder, cores=usable_cores()[-1:]):
        asked = threading.Thread(target=lambda: done.append(evaluator.verify(own, candidate_of(own, ONLY_16))))
        asked.start()
        asked.join(1.0)
        assert asked.is_alive()
    asked.join(30.0)
    assert done and done[0].stage_s["wait"] > 0.5


def test_a_call_is_interrupted_from_another_thread(cache_dir):
    own = task_of(LINEAR)
    slow = candidate_of(own, "import time\ntime.sleep(60)\n")
    with Evaluator(EvaluatorSettings(device="cpu", cache_dir=cache_dir)) as other:
        threading.Timer(1.0, other.interrupt).start()
        begin = time.monotonic()
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                other.verify(own, slow)
        assert time.monotonic() - begin < 20.0


SLOW = LINEAR.replace("class Model(", "class ModelNew(").replace(
    "return torch", "__import__('time').sleep(30)\n            return torch"
)


def test_a_deadline_that_passed_beside_others_is_tried_alone(cache_dir):
    """Whoever shares the device shares its time, so such a deadline proves nothing yet."""
    own = task_of(LINEAR)
    limits = Limits(first_call_s=1.0)
    told: list[str] = []
    with Evaluator(EvaluatorSettings(device="cpu", cache_dir=cache_dir, limits=limits)) as other:
        assert other.verify(own, candidate_of(own, SLOW), progress=told.append).outcome is Outcome.TIMED_OUT
        assert not [line for line in told if "once more" in line]
        neighbour = DeviceLease("cpu", Path(cache_dir), shared=True, cores=usable_cores())
        neighbour.__enter__()
        leaving = threading.Timer(3.0, neighbour.__exit__)
        leaving.start()
        found = other.verify(own, candidate_of(own, SLOW), progress=told.append)
        leaving.join()
        assert found.outcome is Outcome.TIMED_OUT, found.detail
        assert [line for line in told if "once more, alone" in line]
