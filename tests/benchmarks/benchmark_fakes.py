"""Records and results as a search would make them, for tests of what the scripts make of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from cuda_l1.search import Result
from cuda_l1.search.result import BaselineResult
from cuda_l1.types import (
    Candidate,
    Clock,
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

TASK = Task(suite="builtin", name="toy", source="class Model: ...")
GPU = Environment(device="cuda", device_name="Test GPU", lane="gpu", rung="R1", torch="2.11.0", driver="580.1")
STAGE_S = {"build": 0.1, "judge": 0.2, "load": 0.3, "check": 0.4, "time": 2.0, "prepare": 0.5, "samples": 0.6,
           "total": 3.0}  # fmt: skip


def candidate(name: str, proposer: str = "techniques") -> Candidate:
    origin = Origin(proposer=proposer, techniques=(name,))
    return Candidate(task_sha=TASK.sha, task_id=TASK.id, source=f"# {name}", origins=(origin,))


EAGER, COMPILE = candidate("eager", "baselines"), candidate("compile", "baselines")


def timing(
    clock: Clock, opponent: Candidate, speedup: float, half: float | None, best_of: Sequence[str] = ()
) -> Timing:
    pair = Pair(candidate_us=(10.0,), opponent_us=(10.0 * speedup,), candidate_pid=1, opponent_pid=2, log_ratio=0.0)
    return Timing(
        clock=clock,
        opponent=opponent.label,
        opponent_id=opponent.id,
        pairs=(pair,) * (5 if half else 1),
        speedup=speedup,
        speedup_low=speedup / (1 + half) if half else None,
        speedup_high=speedup * (1 + half) if half else None,
        candidate_us=10.0,
        opponent_us=10.0 * speedup,
        best_of=tuple(best_of),
    )


def record(
    which: Candidate,
    timings: Sequence[Timing],
    *,
    protocol: str = "screen",
    flags: Sequence[str] = (),
    findings: Sequence[Finding] = (),
    run: str = "run",
    when: datetime | None = None,
) -> Record:
    trial = Trial(kind="base", error=1e-7, reference_error=1e-7, bound=1e-6, passed_class="fp32")
    evaluation = Evaluation(
        candidate_id=which.id,
        outcome=Outcome.ACCEPTED,
        correctness=Correctness(trials=(trial,), precision_class="fp32", task_class="tf32"),
        timings=tuple(timings),
        findings=tuple(findings),
        environment=GPU,
        protocol=protocol,
        task_flags=tuple(flags),
        stage_s=STAGE_S,
    )
    return Record(run=run, sequence=1, time=when or datetime.now(UTC), candidate=which, evaluation=evaluation)


def eager_record(flags: Sequence[str] = ()) -> Record:
    return record(EAGER, [timing("device", EAGER, 1.0, None)], flags=flags)


def final(name: str, vs_eager: float, vs_best: float, half: float = 0.02) -> Record:
    names = ("eager", "compile")
    figures = [
        timing("device", EAGER, vs_eager, half),
        timing("device", COMPILE, vs_best, half, names),
        timing("call", EAGER, vs_eager * 0.9, half),
        timing("call", COMPILE, vs_best * 0.9, half, names),
    ]
    note = Finding(check="reused-output", severity="note", evidence="timed with a clone")
    return record(candidate(name), figures, protocol="final", findings=[note])


def result(final_record: Record | None, *, unconfirmed: Sequence[Record] = (), compiled: bool = True) -> Result:
    winner = record(candidate("winner"), [timing("device", EAGER, 2.2, None)]) if final_record else None
    baselines = [BaselineResult(name="eager", candidate_id=EAGER.id, outcome=Outcome.ACCEPTED, speedup=1.0)]
    outcome = Outcome.ACCEPTED if compiled else None
    speedup = 1.5 if compiled else None
    baselines.append(BaselineResult(name="compile", candidate_id=COMPILE.id, outcome=outcome, speedup=speedup))
    return Result(
        task_id=TASK.id,
        task_sha=TASK.sha,
        run="run",
        clock="device",
        winner=winner,
        final=final_record,
        unconfirmed=tuple(unconfirmed),
        baselines=tuple(baselines),
        best_baseline="compile" if compiled else "eager",
        stop_reason="exhausted",
        evaluations=7,
        duplicates=1,
        wall_s=20.0,
    )
