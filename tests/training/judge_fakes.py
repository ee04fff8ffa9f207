"""An evaluator that reads a candidate's fate off its text: `speed=2.0` is accepted with that speed-up, `suspect` adds a
suspicion, `busy` one of others on the machine, `busy_once` the same at the first try alone, `fault` fails the machine,
`unjudgeable` the task, `slow` waits to be released, or for `slow_s` seconds; all else is wrong. Without torch."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence

from cuda_l1.config import AnyProtocol
from cuda_l1.errors import InfrastructureError, TaskError
from cuda_l1.types import (
    Candidate,
    Correctness,
    Environment,
    Evaluation,
    Finding,
    Origin,
    Outcome,
    Task,
    Timing,
    Trial,
)

PLACE = Environment(device="cpu", device_name="Test CPU", lane="0", rung="R1", torch="2.13.0")
TASKS = [Task(suite="synth", name=f"toy{number}", source=f"class Model: # {number}\n    pass") for number in range(3)]


def candidate(text: str, task: Task = TASKS[0]) -> Candidate:
    return Candidate(task_sha=task.sha, task_id=task.id, source=text, origins=(Origin(proposer="policy"),))


class FakeEvaluator:
    """Remembers what it was asked to pay for, and what it has answered."""

    slow_s = 1.0

    def __init__(self) -> None:
        self.environment = PLACE
        self.paid: list[str] = []
        self.answered: list[str] = []
        self.release = threading.Event()
        self.best_so_far: list[float | None] = []

    def evaluate(
        self,
        task: Task,
        candidate: Candidate,
        *,
        protocol: AnyProtocol,
        baselines: Sequence[Candidate] = (),
        best_of: Sequence[str] = (),
        best_so_far: float | None = None,
        within_s: float | None = None,
    ) -> Evaluation:
        self.paid.append(candidate.source)
        self.best_so_far.append(best_so_far)
        if "fault" in candidate.source:
            raise InfrastructureError("the device is gone")
        if "unjudgeable" in candidate.source:
            raise TaskError("its output has NaN")
        if "slow" in candidate.source:
            self.release.wait(self.slow_s)
        self.answered.append(candidate.source)
        is_first = self.paid.count(candidate.source) == 1
        return evaluation(
            candidate, is_busy="busy" in candidate.source and (is_first or "once" not in candidate.source)
        )


def evaluation(candidate: Candidate, *, is_busy: bool = False) -> Evaluation:
    found = re.search(r"speed=([\d.]+)", candidate.source)
    if found is None:
        return Evaluation(
            candidate_id=candidate.id, outcome=Outcome.WRONG_VALUES, environment=PLACE, protocol="screen", detail="far"
        )
    speedup = float(found[1])
    trial = Trial(kind="base", error=0.0, reference_error=0.0, bound=1.0, passed_class="fp32")
    timing = Timing(
        clock="call", opponent="eager", opponent_id="e", pairs=(), speedup=speedup, candidate_us=1, opponent_us=speedup
    )
    suspect = Finding(check="clock-mismatch", severity="suspect", evidence="30 %")
    busy = Finding(check="busy-machine", severity="suspect", evidence="9 us where 1 us were enough")
    return Evaluation(
        candidate_id=candidate.id,
        outcome=Outcome.ACCEPTED,
        correctness=Correctness(trials=(trial,), precision_class="fp32", task_class="fp32"),
        timings=(timing,),
        findings=(*((suspect,) if "suspect" in candidate.source else ()), *((busy,) if is_busy else ())),
        environment=PLACE,
        protocol="screen",
    )
