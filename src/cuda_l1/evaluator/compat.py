"""A verdict as a published harness would give it: its comparisons, its clock, its way to a figure, inside our wall.

    build -> refused texts -> load -> comparisons -> timed calls -> one figure

Nothing here defends the figure: what the harness believes is believed. docs/compatibility.md says what differs.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from cuda_l1.config import WARM_UPS, CompatProtocol, Limits
from cuda_l1.evaluator.bench import Runner
from cuda_l1.evaluator.eager import eager_candidate
from cuda_l1.evaluator.failures import Failure, eager_failed
from cuda_l1.evaluator.stages import Stages, limits_for
from cuda_l1.types import Correctness, Finding, Outcome, Pair, Timing, Trial, default_clock

LEAST_US = 1e-3
SLACK_S = 120.0
"""For making inputs and models, beyond what the calls may take."""
_SIDES = ("candidate", "reference")


@dataclass(kw_only=True)
class CompatVerdict(Stages):
    """A verdict under a compatibility protocol."""

    protocol: CompatProtocol
    _trials: list[Trial] = field(default_factory=list)
    _rounds: list[Pair] = field(default_factory=list)

    @property
    def protocol_name(self) -> str:
        return self.protocol.name

    def _run_stages(self) -> None:
        limits = limits_for(self.candidate, self.limits)
        on_cpu = self.environment.device == "cpu"
        if on_cpu:
            self.findings.append(Finding(check="host-clock", severity="note", evidence=_HOST_CLOCK))
        self._refuse()
        with self._lease(shared=True) if on_cpu else nullcontext(), self._stage("build"):
            self._build(limits)
        with self._lease(shared=True):
            runner = self._load_and_check(limits)
        try:
            runner.guest.stop()  # others may be timed before its turn comes
            with self._lease(shared=False), self._stage("time"):
                runner.guest.resume()
                self._time(runner, limits)
        finally:
            self.log += runner.guest.log_tail(2000)
            self.bench.release(runner, keep_caches=self.candidate)

    def _build(self, limits: Limits) -> None:
        """A text that needs names of the reference's cannot be imported alone: there its load decides."""
        try:
            self.log = self.bench.build(self.candidate, limits)
        except Failure as failure:
            if not self.protocol.shares_names or failure.outcome is not Outcome.BUILD_FAILED:
                raise

    def _refuse(self) -> None:
        """Texts that the harness does not run. It looks at both, so that a reference can fail every candidate."""
        for whose, source in (("reference", self.task.source), ("candidate", self.candidate.source)):
            for text in self.protocol.refuses:
                if text in source:
                    raise Failure(Outcome.BUILD_FAILED, f"{self.protocol.name} does not run a {whose} with `{text}`")

    def _load_and_check(self, limits: Limits) -> Runner:
        with self._stage("judge"):
            self.bench.open(self.task, self.limits)
        with self._stage("load"):
            runner = self.bench.compat_runner(self.task, self.candidate, self.protocol, limits)
        try:
            with self._stage("check"):
                self._check(runner, limits)
        except BaseException:
            self.bench.release(runner, keep_caches=self.candidate)
            raise
        return runner

    def _check(self, runner: Runner, limits: Limits) -> None:
        plain = self.protocol.model_dump(mode="json")
        reply = self.bench.ask(runner, "compat_check", limits.verdict_s + limits.first_call_s, protocol=plain)
        self._trials = [Trial(**trial) for trial in reply["evidence"]["trials"]]
        if reply["evidence"]["failure"]:
            raise self.bench.failure(runner, reply["evidence"]["failure"])

    # ── timing ────────────────────────────────────────────────────────────────────────────────────

    def _time(self, runner: Runner, limits: Limits) -> None:
        """Every round, or as many as the harness makes of a slow candidate."""
        for number in range(self.protocol.rounds):
            self._rounds.append(self._timed_round(runner, number, limits))
            if math.exp(self._rounds[-1].log_ratio) < self.protocol.gives_up_below:
                return

    def _timed_round(self, runner: Runner, number: int, limits: Limits) -> Pair:
        if self.protocol.alternates:
            times = self._ask(runner, "round", _SIDES, limits, seed=42 + number)
            return self._pair(times, runner, runner)
        times = self._ask(runner, "alone", ("candidate",), limits, side="candidate")
        if self.protocol.shares_process:
            return self._pair(
                times | self._ask(runner, "alone", ("reference",), limits, side="reference"), runner, runner
            )
        runner.guest.stop()
        try:
            return self._pair(*self._reference_alone(times, runner))
        finally:
            runner.guest.resume()

    def _reference_alone(
        self, times: dict[str, list[float]], runner: Runner
    ) -> tuple[dict[str, list[float]], Runner, Runner]:
        """The reference in a process of its own, where nothing that the candidate set reaches it."""
        eager = eager_candidate(self.task)
        try:
            own = self.bench.compat_runner(self.task, eager, self.protocol, self.limits)
        except Failure as failure:
            raise eager_failed(failure) from failure
        try:
            found = self._ask(own, "alone", ("reference",), self.limits, side="reference")
        finally:
            self.bench.release(own)
        return times | found, runner, own

    def _ask(
        self, runner: Runner, step: str, sides: Sequence[str], limits: Limits, **fields: Any
    ) -> dict[str, list[float]]:
        calls = len(sides) * (WARM_UPS + self.protocol.samples + self.protocol.discard)
        patience = SLACK_S + limits.first_call_s + calls * self.bench.deadlines(limits)["call_s"]
        told = {"step": step, "sides": list(sides), "count": self.protocol.samples, "warm_ups": WARM_UPS, **fields}
        reply = self.bench.ask(runner, "compat_time", patience + 30.0, quiet=True, patience_s=patience, **told)
        times: dict[str, list[float]] = reply["times"]
        return times

    def _pair(self, times: dict[str, list[float]], runner: Runner, opponent: Runner) -> Pair:
        ours, theirs = (self._mean(times[side]) for side in _SIDES)
        return Pair(
            candidate_us=tuple(round(value, 3) for value in times["candidate"]),
            opponent_us=tuple(round(value, 3) for value in times["reference"]),
            candidate_pid=runner.guest.pid,
            opponent_pid=opponent.guest.pid,
            log_ratio=math.log(theirs / ours),
        )

    def _mean(self, times: Sequence[float]) -> float:
        """The harness's figure for one side of a round: the mean, rounded where it rounds."""
        mean = max(statistics.fmean(times), LEAST_US)
        return float(f"{mean:.{self.protocol.digits}g}") if self.protocol.digits else mean

    # ── the conclusion ────────────────────────────────────────────────────────────────────────────

    def _timings(self) -> list[Timing]:
        """One, against eager, on the clock that stands for the harness's. Its speed-up is the mean over rounds."""
        if not self._rounds:
            return []
        clock = default_clock(self.environment.device)
        timing = Timing(
            clock=clock,
            opponent="eager",
            opponent_id=eager_candidate(self.task).id,
            pairs=tuple(self._rounds),
            speedup=statistics.fmean(math.exp(pair.log_ratio) for pair in self._rounds),
            candidate_us=statistics.fmean(self._mean(pair.candidate_us) for pair in self._rounds),
            opponent_us=statistics.fmean(self._mean(pair.opponent_us) for pair in self._rounds),
        )
        return [timing]

    def _correctness(self) -> Correctness | None:
        """`relaxed` at best: closeness in one tolerance says no more."""
        if not self._trials:
            return None
        passed = all(trial.passed_class for trial in self._trials)
        return Correctness(
            trials=tuple(self._trials),
            precision_class="relaxed" if passed else None,
            task_class=self.bench.facts["task_class"],
            oracle="the reference as shipped",
        )


_HOST_CLOCK = "a CPU has no CUDA events: the host clock stands in for them, and no cache is flushed"
