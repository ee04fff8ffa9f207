"""Records made by hand, whose statistics can be computed by hand."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from cuda_l1.report.entries import Entry, Method, entry_of
from cuda_l1.types import (
    Candidate,
    Correctness,
    Environment,
    Evaluation,
    Finding,
    Origin,
    Outcome,
    Pair,
    Record,
    Task,
    Timing,
    Trial,
)

CPU = Environment(device="cpu", device_name="Test CPU", lane="0-1", rung="R2", torch="2.13.0")
GPU = Environment(device="cuda", device_name="Test GPU", lane="gpu", rung="R2", torch="2.13.0", driver="1")
START = datetime(2025, 1, 1, tzinfo=UTC)
OURS, COMPILE = Method("system", "techniques"), Method("baseline", "compile")
LINKS: defaultdict[str, str] = defaultdict(lambda: "tasks/t.html")
"""Every task has a page, and its name does not matter."""
_numbers = count()


def task(name: str = "toy", level: int | None = None, suite: str = "kernelbench") -> Task:
    return Task(suite=suite, name=name, source=f"# {suite} {name}\nclass Model: ...\n", level=level)


def timing(speedup: float, opponent: str = "eager", half: float | None = 0.02, **more: Any) -> Timing:
    """Log half-width `half`; None: without an interval."""
    pair = Pair(candidate_us=(10.0,), opponent_us=(10 * speedup,), candidate_pid=1, opponent_pid=2, log_ratio=0.0)
    values = {
        "clock": "call",
        "opponent": opponent,
        "opponent_id": opponent,
        "pairs": (pair,),
        "speedup": speedup,
        "speedup_low": None if half is None else speedup * math.exp(-half),
        "speedup_high": None if half is None else speedup * math.exp(half),
        "candidate_us": 10.0,
        "opponent_us": 10 * speedup,
    }
    return Timing.model_validate(values | more)


def record(
    of: Task,
    speedup: float | None,
    origin: Origin | str = "techniques",
    *,
    source: str | None = None,
    protocol: str = "final",
    place: Environment = CPU,
    against: Mapping[str, float] | None = None,
    best_of: Sequence[str] = (),
    findings: Sequence[Finding] = (),
    flags: Sequence[str] = (),
    precision_class: str = "fp32",
    task_class: str = "fp32",
    timings: Sequence[Timing] | None = None,
    run: str = "run",
) -> Record:
    """A verdict with that speed-up against eager; None: WRONG_VALUES. A text names a baseline, or `techniques`.

    `against`: timings against further opponents, the first of which is the best of `best_of`.
    """
    number = next(_numbers)
    made = _origin(origin)
    candidate = Candidate(
        task_sha=of.sha, task_id=of.id, source=source or f"{of.name} {made.techniques} {number}", origins=(made,)
    )
    half = 0.02 if protocol == "final" else None
    others = [
        timing(value, name, half, best_of=tuple(best_of) if index == 0 else ())
        for index, (name, value) in enumerate((against or {}).items())
    ]
    trial = Trial(kind="base", error=1e-7, reference_error=1e-7, bound=1e-6, passed_class="fp32")
    right = {"trials": (trial,), "precision_class": precision_class, "task_class": task_class}
    own: Sequence[Timing] = () if speedup is None else timings or (timing(speedup, half=half), *others)
    return Record(
        run=run,
        sequence=number,
        time=START + timedelta(seconds=number),
        candidate=candidate,
        evaluation=Evaluation(
            candidate_id=candidate.id,
            outcome=Outcome.WRONG_VALUES if speedup is None else Outcome.ACCEPTED,
            detail="output 0 differs" if speedup is None else "",
            correctness=None if speedup is None else Correctness.model_validate(right),
            timings=tuple(own),
            environment=place,
            protocol=protocol,
            findings=tuple(findings),
            task_flags=tuple(flags),
        ),
    )


def _origin(given: Origin | str) -> Origin:
    if isinstance(given, Origin):
        return given
    if given == "techniques":
        return Origin(proposer="techniques", techniques=("fusion",))
    if given == "file":
        return Origin(proposer="file")
    return Origin(proposer="baselines", techniques=(given,))


def entry(of: Task, speedup: float | None, origin: Origin | str = "techniques", **more: Any) -> Entry:
    return entry_of(record(of, speedup, origin, **more), of)
