"""Timing: fresh pairs of runners, alternating blocks of random order in one lease, two clocks, and the judge's own.

The parent holds the schedule; the judge drives the calls; a runner that is not being timed is stopped.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from cuda_l1.config import FIRST_PAIRS_PATIENCE, LEAST_PAIRS, Limits, Protocol
from cuda_l1.evaluator.bench import Bench, Runner
from cuda_l1.evaluator.blocks import MULTI_STREAM_US, Blocks
from cuda_l1.evaluator.failures import Failure, eager_failed
from cuda_l1.evaluator.figures import Figures
from cuda_l1.evaluator.findings.clocks import ClockEvidence
from cuda_l1.evaluator.findings.observed import Idle, left_behind, observed, stolen
from cuda_l1.evaluator.findings.physics import physics
from cuda_l1.evaluator.guest.entropy import ENTROPY
from cuda_l1.evaluator.pairs import PairResult, Side
from cuda_l1.evaluator.prefetch import Prefetch
from cuda_l1.scoring import FIRST_PAIRS, pairs_needed, target_half_width
from cuda_l1.types import CallProfile, Candidate, Clock, Finding, Outcome, Timing

DOUBTFUL_PAIRS, SUSPICIOUS_PAIRS = 3, 5
"""So many pairs decide where fewer leave a doubt, or a suspicion."""
MORE_ROWS = 4
"""Asked of a candidate with threads of its own that one row does not accuse. Half as many, with as many of eager's, of
one without any that it does."""
WORTH_A_ROW = 1.05
"""A candidate that looks faster by this factor is asked for calls in a row."""
SLOW_PREPARE_S = 2.0
"""A pair whose preparation takes longer than this is worth preparing beside others."""


class Timer:
    """Times one candidate against its opponents."""

    def __init__(
        self,
        bench: Bench,
        device: str,
        protocol: Protocol,
        opponents: Sequence[tuple[str, Candidate]],
        limits_of: Callable[[Candidate], Limits],
        precision_class: str,
    ) -> None:
        self._bench, self._protocol = bench, protocol
        self._opponents = list(opponents)
        self._best = self._opponents[-1][0]
        self._limits_of = limits_of
        self._checked_class = precision_class
        self.precision_class = precision_class
        """The least exact one of the trials' and those that timed answers show."""
        self._small_parts = False
        self._on_cpu = device == "cpu"
        self.clocks: tuple[Clock, ...] = ("call",) if self._on_cpu else ("device", "call")
        self._blocks = Blocks(bench, self._on_cpu, protocol, self.clocks, limits_of)
        self.pairs: list[PairResult] = []
        self.dropped: dict[str, str] = {}
        self.stage_s: dict[str, float] = {}
        self._ready = Prefetch(bench, limits_of)
        self._ahead: list[Side] = []
        self.streams = 1
        self.profile: CallProfile | None = None
        self.slope_us: float | None = None
        self.compared = 0
        self.worst_timed_error: float | None = 0.0
        self.timed_bound = 0.0
        self._late_reuse = False
        self._unseeded: str | None = None
        self._observed: list[Finding] = []
        self._idle: Finding | None = None
        self._stolen: Finding | None = None

    # ── pairs ─────────────────────────────────────────────────────────────────────────────────────

    def run(self, candidate: Candidate, first: Runner | None) -> None:
        """All pairs that the protocol asks for; `first` holds the checked candidate already. Raises Failure."""
        try:
            self._run(candidate, first)
        finally:
            self.close()

    def prepare_ahead(self) -> None:
        """Make eager ready for the first pair, which does not take the device alone: its text is the task's, and no
        candidate's. It is stopped until that pair. Raises TaskError, as `run` does."""
        name, eager = self._opponents[0]
        self._add_opponent(self._ahead, name, eager, None, None, fresh_sets=True)
        self._ahead[0].runner.guest.stop()

    def close(self) -> None:
        """End the runners that no pair has used. Idempotent."""
        self._ready.drop()
        while self._ahead:
            self._end(self._ahead.pop())

    def _run(self, candidate: Candidate, first: Runner | None) -> None:
        begin = time.monotonic()
        self.add_pair(candidate, first)
        wanted = self._protocol.first_pairs
        while len(self.pairs) < wanted:
            if len(self.pairs) == 1 and self.stage_s.get("prepare", 0.0) > SLOW_PREPARE_S:
                self._prefetch(candidate, wanted - 1)
            if not self._ready and self._is_too_long(time.monotonic() - begin - self.stage_s.get("witness", 0.0)):
                break
            self.add_pair(candidate)
            if len(self.pairs) == self._protocol.first_pairs == FIRST_PAIRS:
                wanted = min(self._protocol.max_pairs, self._pairs_wanted())
        self._tell(candidate)

    def _tell(self, candidate: Candidate) -> None:
        """More pairs where the judge's clock contradicts the runner's: other work on this machine does that in one pair
        or the other, a candidate that hides some does it in most. Who works beside his calls is not believed anyway."""
        if self._idle or self._stolen:
            return
        for count, unclear in (
            (DOUBTFUL_PAIRS, self._evidence.doubtful),
            (SUSPICIOUS_PAIRS, self._evidence.suspicious),
        ):
            if not any(map(unclear, self.clocks)):
                return
            while len(self.pairs) < count:
                self.add_pair(candidate)

    def _is_too_long(self, spent_s: float) -> bool:
        """Whether one more pair is too much after `spent_s` seconds. The first ones are always completed, since the
        interval rests on their spread, unless all of them would take several times the budget."""
        done, first = len(self.pairs), self._protocol.first_pairs
        if done < first:
            return done >= LEAST_PAIRS and first * spent_s / done > FIRST_PAIRS_PATIENCE * self._protocol.budget_s
        return spent_s + spent_s / done > self._protocol.budget_s

    def _prefetch(self, candidate: Candidate, pairs: int) -> None:
        begin = time.monotonic()
        self._ready.fill([candidate, *(opponent for _, opponent in self._opponents)], pairs)
        self._spend("prepare", begin)

    def _pairs_wanted(self) -> int:
        """Stein's rule over every opponent, on the objective clock."""
        clock = self.clocks[0]
        needs = []
        for index in range(1, len(self.pairs[0].sides)):
            ratios = [p.log_ratio(clock, index) for p in self.pairs]
            needs.append(pairs_needed(ratios, target_half_width(self.pairs[0].sides[index].median(clock))))
        return max(needs)

    def add_pair(self, candidate: Candidate, runner: Runner | None = None) -> PairResult:
        """Time one fresh set of runners; every process ends with it."""
        sides: list[Side] = []
        ready = self._ready.take()
        if not ready:
            self._bench.warm_up_for(self._to_start(candidate, runner))
        try:
            runner = runner or (
                ready.pop(0) if ready else self._bench.runner_for(candidate, self._limits_of(candidate))
            )
            sides.append(self._prepared("candidate", candidate, runner, fresh_sets=not self._ahead))
            idle = Idle.begin(runner.guest) if not self.pairs else None
            for name, opponent in list(self._opponents):
                if self._ahead and self._ahead[0].name == name:
                    sides.append(self._ahead.pop())
                else:
                    beside = self._beside(name, candidate)
                    self._add_opponent(sides, name, opponent, ready.pop(0) if ready else None, beside)
            self._idle = idle.end() if idle else self._idle
            for side in sides:
                side.runner.guest.stop()
            threads = sides[0].runner.guest.threads()
            self._time(sides)
            self._stolen = self._stolen or stolen(sides[0].runner.guest.stolen_s())
            self._call_witness(sides)
            for side in sides[1:]:  # they end while the judge compares
                self._dismiss(side)
            before = self.precision_class
            self._verify(sides[0])
            if self.pairs and self.precision_class != before:
                sides[0].runner.guest.resume()
                self._verify_weights(sides[0])
            if not self.pairs:
                calls = sum(map(len, sides[0].samples.values()))
                left = left_behind(threads, sides[0].runner.guest.threads(), calls)
                sides[0].runner.guest.resume()
                eager = self._opponents[0][1]
                seen = observed(self._bench, sides[0].runner, eager.source)  # eager's text is the task's
                self._observed = [*seen, *([left] if left else [])]
                self._verify_weights(sides[0])
                self._look_closer(sides)
        finally:
            for side in sides:
                self._dismiss(side)
            for side in sides:
                self._end(side)
            if runner is not None and not sides:
                self._bench.release(runner)
            for each in ready:
                self._bench.release(each)
        self.pairs.append(PairResult(sides))
        return self.pairs[-1]

    def _to_start(self, candidate: Candidate, runner: Runner | None) -> list[Candidate]:
        """Whose texts say what processes a pair still needs."""
        there = {side.name for side in self._ahead}
        cast = [self._beside(name, candidate) or each for name, each in self._opponents if name not in there]
        return cast if runner else [candidate, *cast]

    def _beside(self, name: str, candidate: Candidate) -> Candidate | None:
        """Whose template eager's runner comes from: on a CPU each call, and what the harness does around it, is slower
        where torch's compiler is loaded."""
        return candidate if name == "eager" and self._on_cpu else None

    def _dismiss(self, side: Side) -> None:
        """Nothing is asked of it any more."""
        if not side.ended:
            side.runner.guest.resume()
            side.runner.guest.dismiss()

    def _end(self, side: Side) -> None:
        """Its process is over; what it compiled in the first pair is kept for the next."""
        if not side.ended:
            self._dismiss(side)
            side.ended = True
            self._bench.release(side.runner, keep_caches=side.candidate if not self.pairs else None)

    def _add_opponent(
        self,
        sides: list[Side],
        name: str,
        opponent: Candidate,
        runner: Runner | None,
        beside: Candidate | None,
        *,
        fresh_sets: bool = False,
    ) -> None:
        """A baseline that fails is named and left out of every pair; eager has to work."""
        try:
            runner = runner or self._bench.runner_for(opponent, self._limits_of(opponent), beside)
            sides.append(self._prepared(name, opponent, runner, fresh_sets=fresh_sets))
        except Failure as failure:
            if runner is not None:
                self._bench.release(runner)
            self._drop(name, failure)

    def _drop(self, name: str, failure: Failure) -> None:
        if name == "eager":
            raise eager_failed(failure) from failure
        self.dropped[name] = failure.detail
        self._opponents = [(n, c) for n, c in self._opponents if n != name]
        self._ready.drop()
        for pair in self.pairs:
            pair.sides = [side for side in pair.sides if side.name != name]

    def _prepared(self, name: str, candidate: Candidate, runner: Runner, *, fresh_sets: bool) -> Side:
        first = self._limits_of(candidate).first_call_s
        begin = time.monotonic()
        reply = self._bench.ask(
            runner,
            "prepare",
            first + 120.0,
            warm_s=0.02,
            fresh_sets=fresh_sets,
            look_for_caching=name == "candidate",
        )
        self._spend("prepare", begin)
        surcharge = MULTI_STREAM_US if name == "candidate" and self.streams > 1 else 0.0
        return Side(name, candidate, runner, prepared=reply, surcharge_us=surcharge)

    def _spend(self, stage: str, begin: float) -> None:
        self.stage_s[stage] = self.stage_s.get(stage, 0.0) + time.monotonic() - begin

    def _time(self, sides: list[Side]) -> None:
        self._bench.settle()
        begin = time.monotonic()
        time.sleep(0.01)  # the judge's and the runners' thread pools stop spinning
        runners = [side.runner for side in sides]
        if self._on_cpu:
            self._bench.share_core(runners)
        else:
            self._bench.pin(runners)
        for clock in self.clocks:
            plan = {side.name: self._blocks.plan(side, len(sides)) for side in sides}
            strange = {side.name: self._blocks.strange(side, plan[side.name], len(sides)) for side in sides}
            rounds = max(blocks for blocks, _ in plan.values())
            for number in range(rounds):
                for side in ENTROPY.sample(sides, len(sides)):
                    blocks, calls = plan[side.name]
                    if number < blocks:
                        begun = time.monotonic()
                        self._block_or_drop(sides, side, clock, calls, strange=strange[side.name][number])
                        if number == 0:
                            took_us = 1e6 * (time.monotonic() - begun)
                            already = strange[side.name]
                            plan[side.name] = self._blocks.after_first(plan[side.name], already, took_us, len(sides))
        self._call_in_a_row(sides)
        self._bench.spread()
        self._spend("samples", begin)

    def _block_or_drop(self, sides: list[Side], side: Side, clock: Clock, calls: int, *, strange: int) -> None:
        """One block; an opponent that fails in it is not the candidate's fault."""
        try:
            self._blocks.run(side, clock, calls, strange=strange)
        except Failure as failure:
            if side is sides[0]:
                raise
            self._drop(side.name, failure)
            sides.remove(side)
            self._bench.release(side.runner)

    def _call_in_a_row(self, sides: list[Side]) -> None:
        """On a CPU, where a candidate looks faster: whether its calls are, too, when nothing can be done between them.
        Once, and again in every pair where that has accused it."""
        worth = self._on_cpu and PairResult(sides).log_ratio("call", 1) > math.log(WORTH_A_ROW)
        if not worth or (self.pairs and not self._evidence.accuses_between("call")):
            return
        self._call_both_in_a_row(sides)
        accused, has_own = self._accused(sides), self._has_threads(sides)
        if sides[0].row is None or accused == has_own:
            return
        if has_own:  # its threads may have kept up by luck
            rows = [sides[0].row, *filter(None, (self._blocks.back_to_back(sides[0]) for _ in range(MORE_ROWS)))]
            sides[0].row = sorted(rows, key=lambda row: row.us)[len(rows) // 2]
            return
        for _ in range(MORE_ROWS // 2):  # what a row takes longer may be others on the machine, and then eager's does
            before, rows_before = PairResult(sides).in_a_row(), [side.row for side in sides[:2]]
            self._call_both_in_a_row(sides)
            after = PairResult(sides).in_a_row()
            if before and after and before.factor < after.factor:
                for side, row in zip(sides, rows_before, strict=False):
                    side.row = row
            if not self._accused(sides):
                return

    def _call_both_in_a_row(self, sides: list[Side]) -> None:
        try:
            sides[1].row = self._blocks.back_to_back(sides[1])
        except Failure as failure:
            self._drop(sides[1].name, failure)
        sides[0].row = self._blocks.back_to_back(sides[0])

    def _accused(self, sides: list[Side]) -> bool:
        return ClockEvidence([PairResult(sides)], output_bytes=0, bandwidth=None).accuses_between("call")

    def _has_threads(self, sides: list[Side]) -> bool:
        """Whether the candidate has more than eager."""
        ours, usual = (side.runner.guest.threads() for side in sides[:2])
        return ours > usual

    def _look_closer(self, sides: list[Side]) -> None:
        """What is asked of one pair only, after its samples."""
        if self._on_cpu and self._protocol.profile_above is None:
            return
        self.slope_us = None if self._on_cpu else self._blocks.slope_us(sides[0])
        begin = time.monotonic()
        seen = self._blocks.look(sides)
        self.streams, self.profile = seen.streams, seen.profile
        self._spend("profile", begin)
        if self.streams > 1:
            sides[0].surcharge_us = MULTI_STREAM_US

    def _call_witness(self, sides: list[Side]) -> None:
        """Where answers follow from seeds, and a candidate looks faster: whether its do, too, or may have been worked
        on before their seeds were known."""
        pair, seeded = PairResult(sides), self._bench.facts.get("seeded")
        if not seeded or self._unseeded or all(pair.log_ratio(clock, 1) <= 0 for clock in self.clocks):
            return
        begin = time.monotonic()
        for side in sides[1:]:  # nothing is asked of them any more, and a device holds so many processes
            self._end(side)
        limits = self._limits_of(sides[0].candidate)
        runner = self._bench.runner_for(sides[0].candidate, limits)
        try:
            reply = self._bench.ask(runner, "witness", limits.first_call_s + 120.0, of=sides[0].runner.name)
        finally:
            self._bench.release(runner)
        self._unseeded = reply["unlike"]
        self._spend("witness", begin)

    def _verify(self, side: Side) -> None:
        """The outputs of timed calls are compared too: right in the trials and wrong when timed is wrong, and what is
        less exact when timed is that."""
        reply = self._bench.ask(side.runner, "verify_timed", 600.0, precision_class=self.precision_class)
        if reply["wrong"]:
            raise Failure(Outcome.WRONG_VALUES, reply["wrong"], side.runner.guest.log_tail(2000))
        self._note_class(reply)
        self.compared += reply["compared"]
        self._late_reuse = self._late_reuse or bool(reply.get("reused"))
        if reply.get("relaid"):  # what it was allowed for the copy was for another layout
            side.prepared["layout_us"] = 0.0
        so_far, error = self.worst_timed_error, reply["error"]
        self.worst_timed_error = None if so_far is None or error is None else max(so_far, error)
        self.timed_bound = max(self.timed_bound, reply.get("bound") or 0.0)

    def _verify_weights(self, side: Side) -> None:
        """Timed calls have one and the same weights: who is right for these alone once the trials are over is wrong.
        And to who is less exact when timed, nobody has put what tells one class from another."""
        now, before = self.precision_class, self._checked_class
        told = self._bench.ask(side.runner, "verify_weights", 600.0, precision_class=now, checked_class=before)
        self._note_class(told)

    def _note_class(self, reply: dict[str, Any]) -> None:
        self.precision_class = reply["precision_class"]
        self._small_parts = self._small_parts or reply["small_parts"]

    # ── figures ───────────────────────────────────────────────────────────────────────────────────

    def findings(self) -> list[Finding]:
        """What the timed runs themselves show."""
        prepared = self.pairs[0].sides[0].prepared
        found = [*self._observed, *filter(None, (self._idle, self._stolen))]
        if prepared["reused"]:
            found.append(
                Finding(
                    check="reused-output",
                    severity="note",
                    evidence="outputs are overwritten by a later call; timed with a clone",
                )
            )
        if self._late_reuse:
            text = "outputs are overwritten by a later call, once calls are timed; those of the trials were not"
            found.append(Finding(check="reused-output", severity="suspect", evidence=text))
        if prepared.get("caching"):
            found.append(Finding(check="caching", severity="suspect", evidence=str(prepared["caching"])))
        if self._unseeded:
            text = (
                f"{self._unseeded}: its random numbers do not follow from torch's seed, and may have been drawn before"
            )
            found.append(Finding(check="drawn-ahead", severity="suspect", evidence=text))
        if self.precision_class == "relaxed" != self._checked_class:
            text = f"once calls are timed its answers are relaxed; those of the trials were {self._checked_class}"
            found.append(Finding(check="precision", severity="suspect", evidence=text))
        if self._small_parts:
            text = "once calls are timed most elements, or small slices, are wrong by their own measure"
            found.append(Finding(check="small-parts", severity="suspect", evidence=text))
        if any(pair.sides[0].late for pair in self.pairs):
            text = "an output was not there yet when its timed call had returned"
            found.append(Finding(check="late-write", severity="reject", evidence=text))
        if self.streams > 1:
            text = f"works on {self.streams} streams; {MULTI_STREAM_US:.0f} us added to its device time"
            found.append(Finding(check="multi-stream", severity="note", evidence=text))
        if len(self.pairs) < self._protocol.first_pairs:
            text = f"the interval rests on {len(self.pairs)} pairs: more would have taken too long"
            found.append(Finding(check="few-pairs", severity="note", evidence=text))
        for clock in self.clocks:
            found += self._evidence.findings(clock)
        return found + self._evidence.slope(self.slope_us) + self._physics()

    def _physics(self) -> list[Finding]:
        if "device" not in self.clocks:
            return []
        ours = statistics.median(pair.sides[0].median("device") for pair in self.pairs)
        whole_us = self._bench.facts.get("whole_us")
        return [] if whole_us is None or ours >= whole_us else physics(ours, self._bench.needed_us())

    @property
    def _evidence(self) -> ClockEvidence:
        facts = self._bench.facts
        return ClockEvidence(self.pairs, facts["output_bytes"], facts.get("copy_bytes_per_us"))

    def timings(self, best_of: tuple[str, ...]) -> list[Timing]:
        """One per clock and opponent."""
        figures = Figures(self.pairs, self._evidence, with_interval=self._protocol.name == "final")
        names = [side.name for side in self.pairs[0].sides]
        best = self._best if self._best in names else None  # one that was lost is not beaten
        return [
            figures.timing(clock, index, best_of if names[index] == best else ())
            for clock in self.clocks
            for index in range(1, len(names))
        ]
