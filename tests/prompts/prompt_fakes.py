"""Records made by hand."""

from __future__ import annotations

from typing import Any

from cuda_l1.types import (
    Candidate,
    Clock,
    Correctness,
    Environment,
    Evaluation,
    Origin,
    Outcome,
    Pair,
    Record,
    Task,
    Timing,
    Trial,
)

TASK = Task(suite="file", name="toy", source="import torch\n\n\nclass Model(torch.nn.Module):\n    pass\n")
PLACE = Environment(device="cpu", device_name="Test CPU", lane="0-1", rung="R2", torch="2.13.0")
GPU_PLACE = Environment(device="cuda", device_name="Test GPU", lane="gpu", rung="R2", torch="2.13.0")
FILE = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n"


def candidate(source: str = FILE, proposer: str = "llm") -> Candidate:
    return Candidate(task_sha=TASK.sha, task_id=TASK.id, source=source, origins=(Origin(proposer=proposer),))


def timing(speedup: float, clock: Clock) -> Timing:
    pair = Pair(candidate_us=(10.0,), opponent_us=(10 * speedup,), candidate_pid=1, opponent_pid=2, log_ratio=0.0)
    return Timing(
        clock=clock,
        opponent="eager",
        opponent_id="e",
        pairs=(pair,),
        speedup=speedup,
        candidate_us=10.0 if clock == "device" else 50.0,
        opponent_us=10.0 * speedup if clock == "device" else 50.0 * speedup,
    )


def record(source: str = FILE, speedup: float | None = 2.0, *, proposer: str = "llm", **more: Any) -> Record:
    """A screen of a candidate; without a speed-up one that failed."""
    place = more.pop("environment", PLACE)
    values: dict[str, Any] = {"outcome": Outcome.BUILD_FAILED, "detail": "does not compile"}
    if speedup is not None:
        trial = Trial(kind="base", error=1e-7, reference_error=1e-7, bound=1e-6, passed_class="fp32")
        right = Correctness(trials=(trial,), precision_class="fp32", task_class="fp32")
        clocks: tuple[Clock, ...] = ("device", "call") if place.device == "cuda" else ("call",)
        timings = tuple(timing(speedup, clock) for clock in clocks)
        values = {"outcome": Outcome.ACCEPTED, "correctness": right, "timings": timings}
    own = candidate(source, proposer)
    found = Evaluation(candidate_id=own.id, environment=place, protocol="screen", **(values | more))
    return Record(run="r", sequence=1, candidate=own, evaluation=found)
