"""What the judge's clock says of a candidate's figures: more than the runner tells, or work beside the window."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cuda_l1.evaluator.pairs import InARow, PairResult
from cuda_l1.types import Clock, Finding, Severity

HOST_FACTOR, HOST_US = 2.0, 50.0
"""A call that waits for the device leaves host work of the harness's to be seen, which lies behind the gate elsewhere:
between two of its launches up to so many microseconds, and up to so many times what eager's outputs take to be handed
over where nothing hides it."""

COUNTED_SHARE = 0.25
"""On a CPU, up to this share of a call beyond what its runner tells is counted and not held against anybody: a thread
that a call starts and joins goes on ending after the join, on the core that the runner replies from."""

BETWEEN_US, BETWEEN_SHARE = 50.0, 0.5
"""By so much, and this share, may a call on a CPU take longer in a row than alone, beyond what the opponent's does:
letting go of outputs lies beside a timed call, and among those in a row."""
BETWEEN_FACTORS = (1.5, 2.5)
"""(suspect from, reject from): how much of a speed-up is lost in a row."""
BETWEEN_PAIRS = 2
"""So many pairs have to show it for an attack."""

BUSY_FACTOR, BUSY_US = 4.0, 200.0
"""So much longer than in its quickest call does either side take on a machine that is no use for measuring."""


@dataclass(frozen=True)
class ClockEvidence:
    """The pairs of one candidate, read for what its runner does not tell. All times in microseconds.

    `pairs`: opponent 1 is eager, whose every call is done as the candidate's and hides nothing. `bandwidth`: bytes that
    a GPU's memory copies in a microsecond; None on a CPU.
    """

    pairs: Sequence[PairResult]
    output_bytes: int
    bandwidth: float | None

    @property
    def _on_cpu(self) -> bool:
        return self.bandwidth is None

    def findings(self, clock: Clock) -> list[Finding]:
        """Mismatches on one clock, and whether the machine was fit to measure on."""
        return self._contradictions(clock) + self._busy_machine(clock)

    def _contradictions(self, clock: Clock) -> list[Finding]:
        return self._mismatch(clock) + self._outside_work(clock) + self._between_calls(clock)

    def slope(self, slope_us: float | None) -> list[Finding]:
        """A warm call cannot take longer than the cold one that the runner reports."""
        if slope_us is None:
            return []
        ours = self._own("device")
        if slope_us <= ours + max(1.0, 0.25 * ours):
            return []
        text = f"each of many calls takes {slope_us:.1f} us by the judge, one alone {ours:.1f} by the runner's"
        return [Finding(check="clock-mismatch", severity="suspect", evidence=text)]

    def distrusted(self, clock: Clock) -> bool:
        """Whether the judge's figures stand in for the runner's."""
        return self._is_mismatched(clock) or self._is_outside(clock) or self.accuses_between(clock)

    def convicts(self, pair: PairResult, clock: Clock) -> bool:
        """Whether one pair alone is an attack's: who cheats in a few of many is believed in none of these."""
        alone = replace(self, pairs=[pair])
        return any(finding.severity == "reject" for finding in alone.findings(clock))

    def suspicious(self, clock: Clock) -> bool:
        """Whether these pairs neither clear a candidate nor convict it."""
        return {finding.severity for finding in self._contradictions(clock)} == {"suspect"}

    def doubtful(self, clock: Clock) -> bool:
        """Whether these pairs are better not relied on: they accuse, or they would if they erred as much the other way;
        what disturbed the opponent that far could hide as much of the candidate's."""
        if self._host_us(clock):
            return any(finding.severity != "note" for finding in self.findings(clock))
        return bool(self.findings(clock)) or abs(self._excess(clock)) > self._limits(clock)[0]

    def implied_us(self, pair: PairResult, clock: Clock, opponent: int) -> float:
        """The candidate's time by all that the judge saw, where its runner is distrusted."""
        beside = max(pair.outside_excess_us(clock, opponent), 0.0) if self._is_outside(clock) else 0.0
        if self.accuses_between(clock):
            return min(row.factor for row in self._rows) * max(pair.sides[0].median(clock), 1e-3)
        return pair.implied_us(clock, opponent) + beside

    def _own(self, clock: Clock) -> float:
        return statistics.median(p.sides[0].median(clock) for p in self.pairs)

    def _host_us(self, clock: Clock) -> float:
        """What of the harness's host work a candidate shows that waits for the device where eager does not, at most:
        then the judge's figures stand, host work included, and nobody is accused of it. 0 for any other."""
        if clock != "device" or not all(p.sides[0].waits and not p.sides[1].waits for p in self.pairs):
            return 0.0
        sides = [pair.sides[1] for pair in self.pairs]
        handed_over = statistics.median(side.outside_us("call") - side.outside_us("device") for side in sides)
        return HOST_US + HOST_FACTOR * max(handed_over, 0.0)

    def _severity(self, clock: Clock, excess: float, limits: tuple[float, float], *, sure: bool) -> Severity:
        """Of an excess beyond the first of `limits`. `sure`: there is too much of it for anything but an attack. Who
        waits for the device and is the slower one by his own figure has gained nothing by it."""
        if (host_us := self._host_us(clock)) and (excess <= limits[0] + host_us or not self._is_faster(clock)):
            return "note"
        return "reject" if sure and self._is_faster(clock) else "suspect"

    def _is_faster(self, clock: Clock) -> bool:
        return statistics.median(p.log_ratio(clock, 1) for p in self.pairs) > 0

    # ── the machine ───────────────────────────────────────────────────────────────────────────────

    def _busy_machine(self, clock: Clock) -> list[Finding]:
        """Suspect where eager was slowed down by a factor, or the candidate so that it looks slower than eager: threads
        wait for one another wherever somebody else computes, and who has one thread looks faster by that factor."""
        if not self._on_cpu:
            return []
        slowed = ((1, "the reference"), *([] if self._is_faster(clock) else [(0, "the candidate")]))
        for index, name in slowed:
            sides = [pair.sides[index] for pair in self.pairs]
            timed = statistics.median(side.median(clock) for side in sides)
            prepared = [us for side in sides if (us := float(side.prepared.get("us") or 0.0))]
            alone = min([*prepared, *(us for side in sides for us in side.samples[clock])])
            if timed >= max(BUSY_FACTOR * alone, alone + BUSY_US):
                text = f"{name} took {timed:.0f} us where {alone:.0f} us were enough at best: others were computing"
                return [Finding(check="busy-machine", severity="suspect", evidence=text)]
        return []

    # ── inside the window ─────────────────────────────────────────────────────────────────────────

    def _mismatch(self, clock: Clock) -> list[Finding]:
        """Suspect where the judge sees more than the runner says; an attack where that made it look the faster one, on
        a machine that was steady enough to tell (by the opponent, which the candidate cannot disturb)."""
        if not self._is_mismatched(clock):
            return []
        excess, ours, limits = self._excess(clock), self._own(clock), self._limits(clock)
        sure = excess > max(limits[1], 3 * self._unsteadiness(clock))
        text = f"on the {clock} clock the judge sees {excess:.1f} us more than the runner's {ours:.1f} us"
        counted = self._on_cpu and excess <= COUNTED_SHARE * ours
        severity = "note" if counted else self._severity(clock, excess, limits, sure=sure)
        return [Finding(check="clock-mismatch", severity=severity, evidence=text)]

    def _is_mismatched(self, clock: Clock) -> bool:
        """An unsteady machine excuses a factor of 2."""
        excused = min(self._unsteadiness(clock), self._own(clock))
        return self._excess(clock) > max(self._limits(clock)[0], excused)

    def _excess(self, clock: Clock) -> float:
        """By how much the judge's figure for the candidate exceeds the runner's, median over pairs."""
        return statistics.median(p.implied_us(clock, 1) - p.sides[0].median(clock) for p in self.pairs)

    def _unsteadiness(self, clock: Clock) -> float:
        return statistics.median(p.sides[1].unsteadiness_us(clock) for p in self.pairs)

    def _limits(self, clock: Clock) -> tuple[float, float]:
        """(suspect above, reject above) by which the judge's clock may exceed the runner's.

        On a CPU a round trip holds two switches between processes, so it is coarser.
        """
        ours = self._own(clock)
        if not self._on_cpu:
            return max(3.0, 0.03 * ours), max(6.0, 0.25 * ours)
        return max(20.0, 0.1 * ours), max(100.0, 1.0 * ours)

    # ── beside it (a GPU's clocks) ────────────────────────────────────────────────────────────────

    def _outside_work(self, clock: Clock) -> list[Finding]:
        """Suspect where more goes on beside the candidate's windows than beside eager's, since preparing and copying
        are the harness's and the same for both; an attack where that is most of what makes it the faster one, and much
        the same in each call. On a host without a free core the runner is late to say that it is done, which a long
        call of eager's hides on the device and a short one does not."""
        if not self._is_outside(clock):
            return []
        excess, ours, limits = self._outside(clock), self._own(clock), self._outside_limits(clock)
        text = f"on the {clock} clock {excess:.1f} us of work lie beside the timed {ours:.1f} us"
        spread = statistics.median(p.sides[0].outside_spread_us(clock) for p in self.pairs)
        severity = self._severity(clock, excess, limits, sure=excess > max(limits[1], 3 * spread))
        return [Finding(check="outside-work", severity=severity, evidence=text)]

    def _is_outside(self, clock: Clock) -> bool:
        return self._outside(clock) > self._outside_limits(clock)[0]

    def _outside(self, clock: Clock) -> float:
        return statistics.median(p.outside_excess_us(clock, 1) for p in self.pairs)

    def _outside_limits(self, clock: Clock) -> tuple[float, float]:
        """(suspect above, reject above). These windows hold host work of the harness's."""
        ours = self._own(clock)
        copy = 2 * self.output_bytes / self.bandwidth if self.bandwidth else 0.0
        return max(20.0, 0.25 * ours) + copy, max(100.0, ours) + copy

    # ── between calls (a CPU's clock) ─────────────────────────────────────────────────────────────

    def _between_calls(self, clock: Clock) -> list[Finding]:
        """Suspect where calls in a row take longer than one alone: what is done between timed calls is part of each;
        an attack where several pairs show that this is most of what makes it the faster one."""
        if not self.accuses_between(clock):
            return []
        excess, factor = (min(getattr(row, name) for row in self._rows) for name in ("excess_us", "factor"))
        sure = len(self._rows) >= BETWEEN_PAIRS and factor > BETWEEN_FACTORS[1]
        text = (
            f"in a row each call takes {excess:.0f} us more than the {self._own(clock):.0f} us of one alone, "
            f"and of the speed-up is left 1/{factor:.1f}"
        )
        severity: Severity = "reject" if sure and self._is_faster(clock) else "suspect"
        return [Finding(check="outside-work", severity=severity, evidence=text)]

    def accuses_between(self, clock: Clock) -> bool:
        """Whether calls in a row take longer than one alone, in all pairs that were asked: a busy machine only adds."""
        if clock != "call" or not self._rows:
            return False
        limit = max(BETWEEN_US, BETWEEN_SHARE * self._own(clock))
        return all(row.excess_us > limit and row.factor > BETWEEN_FACTORS[0] for row in self._rows)

    @property
    def _rows(self) -> list[InARow]:
        return [row for row in (pair.in_a_row() for pair in self.pairs) if row is not None]
