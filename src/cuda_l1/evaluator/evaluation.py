"""One verdict, from source text to an Evaluation: build, load, check, time, decide. Runs in the parent."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from typing import Any

from cuda_l1.config import Limits, Protocol
from cuda_l1.errors import OutOfTimeError
from cuda_l1.evaluator.bench import Runner
from cuda_l1.evaluator.eager import eager_candidate
from cuda_l1.evaluator.failures import Failure, one_line
from cuda_l1.evaluator.findings.observed import observed
from cuda_l1.evaluator.stages import Stages, limits_for
from cuda_l1.evaluator.timing import Timer
from cuda_l1.evaluator.unstable import measure_again
from cuda_l1.types import CallProfile, Candidate, Correctness, Counters, Finding, Outcome, Timing, Trial, Verification


class _AtOddBytes(Exception):
    """A candidate failed in the trial whose inputs begin at addresses that no vector load may have, and in no other
    before it. Its cause is the Failure."""


@dataclass(kw_only=True)
class Verdict(Stages):
    """A verdict by our own protocol: of correctness and time with `run`, of correctness alone with `verify`."""

    protocol: Protocol
    baselines: Sequence[Candidate] = ()
    """What the candidate is timed against besides eager."""
    best_of: tuple[str, ...] = ()
    """Names of the baselines that the one among `baselines` was best of."""
    best_so_far: float | None = None
    """The task's best speed-up against eager: a screen that is faster by more than 10 % is measured again."""
    until: float = math.inf
    """The `time.monotonic()` at which building and checking are given up."""
    _evidence: dict[str, Any] | None = None
    """What the judge found in the trials."""
    _timer: Timer | None = None
    _peak_bytes: tuple[int | None, int | None] = (None, None)
    """Of the candidate and of eager."""
    _counted: Counters | None = None

    @property
    def protocol_name(self) -> str:
        return self.protocol.name

    def verify(self) -> Verification:
        """The trials without the timing. Raises as `run` does."""
        begin = time.monotonic()
        try:
            with self._lease(shared=True):
                with self._stage("build"):
                    self.log = self.bench.build(self.candidate, self._limits_now())
                runner = self._load_and_check(self._limits_now())
                if runner is not None:
                    self.bench.release(runner)
            outcome, detail = Outcome.ACCEPTED, ""
        except Failure as failure:
            outcome, detail = self._outcome_of(failure)
        self.stage_s["total"] = time.monotonic() - begin
        return Verification(
            candidate_id=self.candidate.id,
            task_sha=self.task.sha,
            outcome=outcome,
            detail=one_line(detail),
            correctness=self._correctness(),
            findings=tuple(dict.fromkeys(self.findings)),
            environment=self.environment,
            task_flags=self._task_flags(),
            stage_s=self._rounded_stages(),
        )

    def _run_stages(self) -> None:
        """Build and check while others may use the device too, then time with the device to itself."""
        on_cpu = self.environment.device == "cpu"
        # A compiler disturbs what is timed on the cores beside it, and hardly what is timed on a GPU.
        with self._lease(shared=True) if on_cpu else nullcontext(), self._stage("build"):
            self.log = self.bench.build(self.candidate, self._limits_now())
        checked: list[Runner] = []

        def end_checked() -> None:
            """A candidate that was called may go on working: not while another one is timed."""
            while checked:
                self.bench.release(checked.pop(), keep_caches=self.candidate)

        def make_way(text: str) -> None:
            self.progress(text)
            end_checked()

        with ExitStack() as in_the_end:
            in_the_end.callback(end_checked)
            with self._lease(shared=True):
                checked += filter(None, [self._load_and_check(self._limits_now())])
                timer = self._new_timer()
                in_the_end.callback(timer.close)
                if not on_cpu:
                    timer.prepare_ahead()
                self.bench.settle()
            with self._lease(shared=False, on_wait=make_way), self._stage("time"):
                self._time(timer, checked.pop() if checked else None)  # the timer ends the runner that it is given
                if self._is_looked_into(timer):
                    with self._stage("counters"):
                        own = limits_for(self.candidate, self.limits)
                        self._counted = self.bench.counters(self.task, self.candidate, own)

    def _first_pair(self) -> list[Candidate]:
        """Whose processes are started while the trials run, so that the first pair to be timed need not wait for them.
        On a GPU the candidate's of the trials may go on; a spare one stands by where that has to make way."""
        on_cpu = self.environment.device == "cpu"
        return [self.candidate, self.candidate if on_cpu else eager_candidate(self.task)]

    def _limits_now(self) -> Limits:
        """The candidate's limits, and no deadline that is later than anybody waits."""
        return limits_for(self.candidate, self.limits).within(self.until - time.monotonic())

    def _outcome_of(self, failure: Failure) -> tuple[Outcome, str]:
        if failure.outcome is Outcome.TIMED_OUT and time.monotonic() >= self.until:
            raise OutOfTimeError(f"{self.candidate.label}: given up for want of time: {failure.detail}") from failure
        return super()._outcome_of(failure)

    def _load_and_check(self, limits: Limits) -> Runner | None:
        """The checked runner where the timer may go on with it. Raises Failure.

        A candidate that fails at odd addresses alone is checked anew with inputs at multiples of 16 bytes, as any
        allocator gives them, and gets a note.
        """
        with self._stage("judge"):
            self.bench.open(self.task, self.limits, [self.candidate])
        try:
            return self._checked(limits, aligned=False)
        except _AtOddBytes as odd:
            runner = self._checked(limits, aligned=True)
            text = f"wants inputs that begin at multiples of 16 bytes, of others: {odd.__cause__}"
            self.findings.append(Finding(check="alignment", severity="note", evidence=one_line(text)))
            return runner

    def _checked(self, limits: Limits, *, aligned: bool) -> Runner | None:
        """A fresh runner after all trials, where the timer may go on with it. Raises Failure."""
        with self._stage("load"):
            runner = self.bench.runner_for(self.candidate, limits)
        self.bench.warm_up_for(self._first_pair())  # they come up beside the trials
        handed_over = False
        try:
            with self._stage("check"):
                self._check(runner, limits, aligned=aligned)
            self.log += runner.guest.log_tail(2000)
            # On a CPU the trials leave their mark on a process (its heap): both sides of a pair start afresh.
            handed_over = self.environment.device == "cuda"
        finally:
            if not handed_over:
                own = self.candidate.task_sha == self.task.sha  # what another size compiles is not for the timed runs
                self.bench.release(runner, keep_caches=self.candidate if own else None)
        return runner if handed_over else None

    def _check(self, runner: Runner, limits: Limits, *, aligned: bool) -> None:
        unmapped = runner.facts["unmapped"]
        if unmapped:
            text = (
                f"{len(unmapped)} tensors of the reference have no partner, e.g. {unmapped[0]}: weights were not varied"
            )
            self.findings.append(Finding(check="weights-unmapped", severity="suspect", evidence=one_line(text)))
        budget = min(limits.verdict_s + limits.first_call_s, max(self.until - time.monotonic(), 0.1))
        reply = self.bench.ask(runner, "check", budget, mapped=not unmapped, aligned=aligned)
        failure = reply["evidence"]["failure"] and self.bench.failure(runner, reply["evidence"]["failure"])
        if failure and reply["evidence"]["at_odd_bytes"]:
            raise _AtOddBytes from failure
        self._evidence = {**reply["evidence"], "oracle": reply["oracle"]}
        self.findings += [Finding(**{**f, "evidence": one_line(f["evidence"])}) for f in reply["evidence"]["findings"]]
        if failure:
            raise failure
        self.findings += observed(self.bench, runner, self.task.source)

    def _new_timer(self) -> Timer:
        assert self._evidence is not None
        eager = eager_candidate(self.task)
        opponents = [("eager", eager), *((b.label, b) for b in self.baselines if b.id != eager.id)]
        return Timer(
            self.bench,
            self.environment.device,
            self.protocol,
            opponents,
            lambda c: limits_for(c, self.limits),
            self._evidence["precision_class"],
        )

    def _time(self, timer: Timer, runner: Runner | None) -> None:
        timer.run(self.candidate, runner)
        if self.protocol.name == "screen":
            self.findings += measure_again(timer, self.candidate, self.best_so_far)
        self._timer = timer
        self.stage_s.update(timer.stage_s)
        ours, theirs = (side.prepared.get("peak_bytes") for side in timer.pairs[0].sides[:2])
        self._peak_bytes = (int(ours) if ours else None, int(theirs) if theirs else None)
        self.findings += timer.findings()
        for name, reason in timer.dropped.items():
            text = one_line(f"{name}: {reason}")
            self.findings.append(Finding(check="baseline-failed", severity="note", evidence=text))
        rejected = next((f for f in self.findings if f.severity == "reject"), None)
        if rejected:
            raise Failure(Outcome.REJECTED, f"{rejected.check}: {rejected.evidence}")

    def _is_looked_into(self, timer: Timer) -> bool:
        """Whether somebody asked what the kernels of so fast a candidate do."""
        above = self.protocol.profile_above
        if self.environment.device == "cpu" or above is None:
            return False
        return math.exp(timer.pairs[0].log_ratio(timer.clocks[0], 1)) > above

    # ── the conclusion ────────────────────────────────────────────────────────────────────────────

    def _timings(self) -> list[Timing]:
        return self._timer.timings(self.best_of) if self._timer else []

    def _peaks(self) -> tuple[int | None, int | None]:
        return self._peak_bytes

    def _profile(self) -> CallProfile | None:
        return self._timer.profile if self._timer else None

    def _counters(self) -> Counters | None:
        return self._counted

    def _correctness(self) -> Correctness | None:
        evidence = self._evidence
        if evidence is None or not evidence["trials"]:
            return None
        trials, timer = [Trial(**t) for t in evidence["trials"]], self._timer
        found = timer.precision_class if timer else evidence["precision_class"]
        if timer is not None and timer.compared:
            trials.append(
                Trial(
                    kind="timed",
                    error=timer.worst_timed_error,
                    reference_error=None,
                    bound=timer.timed_bound,
                    passed_class=found,
                )
            )
        return Correctness(
            trials=tuple(trials),
            precision_class=found,
            task_class=self.bench.facts["task_class"],
            oracle=evidence["oracle"],
            allclose_kernelbench=evidence["allclose_kernelbench"],
            allclose_release=evidence["allclose_release"],
        )
