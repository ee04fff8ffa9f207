"""Small real records for the archive's tests."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cuda_l1.types import (
    Candidate,
    Correctness,
    Cost,
    Environment,
    Evaluation,
    Finding,
    Origin,
    Outcome,
    Pair,
    Record,
    Reply,
    Task,
    Timing,
    Trial,
)

TASK = Task(suite="builtin", name="toy", source="class Model: ...\n# größer\n")
OTHER_TASK = Task(suite="builtin", name="another", source="class Model: pass\n")
START = datetime(2025, 1, 1, tzinfo=UTC)
CPU = Environment(device="cpu", device_name="Test CPU", lane="0-1", rung="R1", torch="2.9.0")
OTHER_CPU = CPU.model_copy(update={"lane": "0-7"})


def make_candidate(text: str, task: Task = TASK) -> Candidate:
    return Candidate(task_sha=task.sha, task_id=task.id, source=text, origins=(Origin(proposer="file"),))


def make_timing(speedup: float, clock: str = "call") -> Timing:
    pair = Pair(candidate_us=(1.0,), opponent_us=(speedup,), candidate_pid=1, opponent_pid=2, log_ratio=0.0)
    return Timing.model_validate(
        {
            "clock": clock,
            "opponent": "eager",
            "opponent_id": "e",
            "pairs": (pair,),
            "speedup": speedup,
            "speedup_low": speedup * 0.98,
            "speedup_high": speedup * 1.02,
            "candidate_us": 1.0,
            "opponent_us": speedup,
        }
    )


def make_evaluation(
    candidate: Candidate,
    speedup: float | None = 2.0,
    protocol: str = "screen",
    environment: Environment = CPU,
    findings: tuple[Finding, ...] = (),
    precision_class: str = "fp32",
    timings: tuple[Timing, ...] | None = None,
) -> Evaluation:
    """Accepted with `speedup`, or WRONG_VALUES when it is None."""
    right = speedup is not None
    trial = Trial(kind="base", error=1e-7, reference_error=1e-7, bound=1e-6, passed_class="fp32")
    correctness = {"trials": (trial,), "precision_class": precision_class, "task_class": "fp32"}
    return Evaluation(
        candidate_id=candidate.id,
        outcome=Outcome.ACCEPTED if right else Outcome.WRONG_VALUES,
        detail="" if right else "output 0 differs",
        correctness=Correctness.model_validate(correctness) if right else None,
        timings=() if speedup is None else timings or (make_timing(speedup),),
        environment=environment,
        protocol=protocol,
        findings=findings,
    )


@pytest.fixture
def make_record() -> Callable[..., Record]:
    """Makes a record from a candidate's text; keyword arguments go to the evaluation."""

    def make(text: str = "x", *, run: str = "run", sequence: int = 1, task: Task = TASK, **evaluation: Any) -> Record:
        candidate = make_candidate(text, task)
        return Record(
            run=run,
            sequence=sequence,
            time=START + timedelta(seconds=sequence),
            candidate=candidate,
            evaluation=make_evaluation(candidate, **evaluation),
        )

    return make


@pytest.fixture
def make_reply() -> Callable[..., Reply]:
    """Makes a reply; keyword arguments replace its fields."""

    def make(number: int = 0, **fields: Any) -> Reply:
        known: dict[str, Any] = {
            "run": "run",
            "task_sha": TASK.sha,
            "model": "large",
            "endpoint": "localhost:8000",
            "prompt_sha": "p" * 64,
            "number": number,
            "time": START + timedelta(seconds=number),
            "text": "größer\x00",
            "candidate_id": "c" * 64,
            "cost": Cost(tokens_in=100, tokens_out=10, usd=0.5),
        }
        return Reply.model_validate(known | fields)

    return make


@pytest.fixture
def task() -> Task:
    return TASK


@pytest.fixture
def other_task() -> Task:
    return OTHER_TASK
