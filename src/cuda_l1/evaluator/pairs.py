"""What one fresh pair of runners gave: samples by clock, the runners' own and the judge's."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from cuda_l1.evaluator.bench import Runner
from cuda_l1.types import Candidate, Clock


@dataclass(frozen=True)
class Row:
    """Calls back to back, by the judge's clock, microseconds."""

    us: float
    """What one of them takes."""
    cold_us: float = 0.0
    """What its inputs take longer to read than those of a call alone, by the judge's own measure."""


@dataclass
class Side:
    """One runner of a pair: samples by clock, microseconds."""

    name: str
    candidate: Candidate
    runner: Runner
    prepared: dict[str, float | int | bool | None] = field(default_factory=dict)
    samples: dict[Clock, list[float]] = field(default_factory=dict)
    judge: dict[Clock, list[float]] = field(default_factory=dict)
    outside: dict[Clock, list[float]] = field(default_factory=dict)
    """What the cycles of its calls took beside the judge's window."""
    surcharge_us: float = 0.0
    """Added on the device clock."""
    late: bool = False
    """An output was not yet there when its call had returned."""
    row: Row | None = None
    """Of its calls, where one was asked for."""
    opened: int = 0
    """Calls on the device clock that the gate had to be opened for, before they returned."""
    ended: bool = False
    """Whether its process is over."""

    def median(self, clock: Clock) -> float:
        """The figure of this side on a clock; on the device clock with the surcharge for several streams."""
        value = statistics.median(self.samples[clock])
        return value + (self.surcharge_us if clock == "device" else 0.0)

    @property
    def waits(self) -> bool:
        """Whether its calls wait for the device, so that what the host does in them cannot lie behind the gate."""
        return 2 * self.opened > len(self.samples.get("device", []))

    def unseen_us(self, clock: Clock) -> float:
        """What the judge sees of a call beyond the runner's figure: of the calls that make the runner's median, the
        lowest tenth. A busy machine only ever adds; work that is hidden is in each call whose figure is low, or its
        answer is wrong, which it cannot dare for many."""
        own = self.samples[clock]
        return self._lowest(clock, [j - o for j, o in zip(self.judge[clock], own, strict=True)])

    def outside_us(self, clock: Clock) -> float:
        """What the same calls' cycles took beside the judge's window, the lowest tenth. Outputs are copied there: what
        their layout costs is left out."""
        outside = self.outside.get(clock)
        return self._lowest(clock, outside) - self._layout_us if outside else 0.0

    def outside_spread_us(self, clock: Clock) -> float:
        """The middle half of what the same calls' cycles took beside the window: work is there in each of them alike,
        waiting for a core of a busy host is not."""
        quick = self._of_quick_calls(clock, self.outside.get(clock) or [0.0] * len(self.samples[clock]))
        return quick[3 * len(quick) // 4] - quick[len(quick) // 4]

    def _lowest(self, clock: Clock, beyond: Sequence[float]) -> float:
        quick = self._of_quick_calls(clock, beyond)
        return quick[len(quick) // 10]

    def _of_quick_calls(self, clock: Clock, beyond: Sequence[float]) -> list[float]:
        own = self.samples[clock]
        middle = statistics.median(own)
        return sorted(b for b, o in zip(beyond, own, strict=True) if o <= middle)

    @property
    def _layout_us(self) -> float:
        """What outputs of another layout than the reference's take more to be copied, by the judge's own measure."""
        return float(self.prepared.get("layout_us") or 0.0)

    def unsteadiness_us(self, clock: Clock) -> float:
        """How much the judge's figure varies against the runner's: the middle half of their differences."""
        beyond = sorted(j - o for j, o in zip(self.judge[clock], self.samples[clock], strict=True))
        return beyond[3 * len(beyond) // 4] - beyond[len(beyond) // 4]


@dataclass(frozen=True)
class InARow:
    """A candidate's calls back to back, against what one takes alone."""

    excess_us: float
    """By how much a call takes longer than alone, beyond that by which the opponent's does, or by which reading its
    inputs does."""
    factor: float
    """By which a call takes longer than alone, beyond the factor by which the opponent's does: so much less is the
    candidate's speed-up in a row."""


@dataclass
class PairResult:
    """One fresh pair (candidate and every opponent)."""

    sides: list[Side]

    def log_ratio(self, clock: Clock, opponent: int) -> float:
        """log(t_opponent / t_candidate) by the runners' clock."""
        return math.log(max(self.sides[opponent].median(clock), 1e-3) / max(self.sides[0].median(clock), 1e-3))

    def implied_us(self, clock: Clock, opponent: int) -> float:
        """The candidate's time by the judge's clock: its own figure plus what is unseen of it, less the opponent's."""
        ours, theirs = self.sides[0], self.sides[opponent]
        return max(ours.median(clock) + ours.unseen_us(clock) - theirs.unseen_us(clock), 1e-3)

    def in_a_row(self) -> InARow | None:
        """What calls in a row say of the candidate and the first opponent; None where that was not asked."""
        ours, theirs = self.sides[:2]
        if ours.row is None or theirs.row is None:
            return None
        alone, alone_theirs = (max(side.median("call"), 1e-3) for side in (ours, theirs))
        factor = ours.row.us / alone * alone_theirs / max(theirs.row.us, 1e-3)
        return InARow(ours.row.us - alone - max(theirs.row.us - alone_theirs, ours.row.cold_us), factor)

    def outside_excess_us(self, clock: Clock, opponent: int) -> float:
        """By how much more goes on outside of the candidate's windows than of the opponent's: preparing and copying are
        the harness's there, and the same for both."""
        return self.sides[0].outside_us(clock) - self.sides[opponent].outside_us(clock)
