"""What every kind of verdict shares: stages that are timed, the lease of the device, and how a verdict ends.

Every way in which a candidate can be bad ends here as an Outcome; only faults of the machine or of the task are raised.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from cuda_l1.config import Limits
from cuda_l1.evaluator.bench import Bench
from cuda_l1.evaluator.failures import Failure, MemoryContested, one_line
from cuda_l1.evaluator.findings.static import static_findings
from cuda_l1.evaluator.lease import DeviceLease
from cuda_l1.types import (
    CallProfile,
    Candidate,
    Correctness,
    Counters,
    Environment,
    Evaluation,
    Finding,
    Outcome,
    Task,
    Timing,
)

BASELINE_FACTOR = 10.0
Progress = Callable[[str], None]


def limits_for(candidate: Candidate, limits: Limits) -> Limits:
    """Baselines get ten times the deadlines: max-autotune of a large network passes 120 s."""
    baseline = any(origin.proposer == "baselines" for origin in candidate.origins)
    return limits.times(BASELINE_FACTOR) if baseline else limits


@dataclass(kw_only=True)
class Stages(ABC):
    """The state of one evaluation; a subclass says what its stages are and what they gave."""

    task: Task
    candidate: Candidate
    bench: Bench
    environment: Environment
    limits: Limits
    lease: Callable[..., DeviceLease]
    """Makes the lease of the device: `on_wait`, and whether it is `shared`, are for each time."""
    progress: Progress
    alone: bool = False
    """Checks, too, have the device to themselves."""
    stage_s: dict[str, float] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    log: str = ""

    @property
    @abstractmethod
    def protocol_name(self) -> str:
        """What the evaluation is stored under."""

    @abstractmethod
    def _run_stages(self) -> None:
        """All stages in order. Raises Failure where the candidate ends the verdict."""

    @abstractmethod
    def _correctness(self) -> Correctness | None:
        """The evidence so far."""

    @abstractmethod
    def _timings(self) -> list[Timing]:
        """What was timed so far."""

    def _peaks(self) -> tuple[int | None, int | None]:
        """Bytes of device memory that candidate and reference took at most, where that was measured."""
        return None, None

    def _profile(self) -> CallProfile | None:
        """Where the time of a call goes, where that was asked."""
        return None

    def _counters(self) -> Counters | None:
        """What hardware counters show of a call, where that was asked."""
        return None

    def run(self) -> Evaluation:
        """The whole way. Raises TaskError and InfrastructureError, nothing else: MemoryContested, unless alone, where
        memory or time ran out that others share."""
        begin = time.monotonic()
        self.findings += static_findings(self.candidate.source, self.task.source)
        try:
            self._run_stages()
            outcome, detail = Outcome.ACCEPTED, ""
        except Failure as failure:
            outcome, detail = self._outcome_of(failure)
            self.log = failure.log or self.log
        self.stage_s["total"] = time.monotonic() - begin
        return self._conclude(outcome, detail)

    def _outcome_of(self, failure: Failure) -> tuple[Outcome, str]:
        if failure.contested and not self.alone:
            raise MemoryContested(failure.detail) from failure
        return failure.outcome, failure.detail

    @contextmanager
    def _stage(self, name: str) -> Any:
        self.progress(name)
        begin, rested_s = time.monotonic(), self.bench.rested_s
        try:
            yield
        finally:
            self._spend(name, time.monotonic() - begin - (self.bench.rested_s - rested_s))

    def _spend(self, stage: str, seconds: float) -> None:
        self.stage_s[stage] = self.stage_s.get(stage, 0.0) + seconds

    @contextmanager
    def _lease(self, *, shared: bool, on_wait: Progress | None = None) -> Any:
        """The device, alone or beside others that do not time on it; waiting for it counts as a stage of its own."""
        shared = shared and not self.alone
        with self.lease(on_wait=on_wait or self.progress, shared=shared, whole=self.alone) as lease:
            self._spend("wait", lease.waited_s)
            rested_s = self.bench.rested_s
            try:
                with self.bench.giving_way(lease):
                    yield lease
            except Failure as failure:
                if failure.outcome is Outcome.TIMED_OUT and lease.has_company():
                    failure.contested = True
                raise
            finally:
                self._spend("wait", self.bench.rested_s - rested_s)

    def _conclude(self, outcome: Outcome, detail: str) -> Evaluation:
        ours, theirs = self._peaks()
        return Evaluation(
            candidate_id=self.candidate.id,
            outcome=outcome,
            detail=one_line(detail),
            correctness=self._correctness(),
            timings=tuple(self._timings()),
            findings=tuple(dict.fromkeys(self.findings)),
            environment=self.environment,
            protocol=self.protocol_name,
            task_flags=self._task_flags(),
            work=self.bench.work if self.bench.task_sha == self.task.sha else None,
            peak_bytes=ours,
            reference_peak_bytes=theirs,
            stage_s=self._rounded_stages(),
            log=self.log[-4000:],
            profile=self._profile(),
            counters=self._counters(),
        )

    def _rounded_stages(self) -> dict[str, float]:
        return {name: round(value, 4) for name, value in self.stage_s.items()}

    def _task_flags(self) -> tuple[str, ...]:
        """The audit's; none where the verdict ended before this task had a judge."""
        return tuple(self.bench.facts["flags"]) if self.bench.task_sha == self.task.sha else ()
