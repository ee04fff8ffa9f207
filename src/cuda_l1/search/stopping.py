"""When to stop: pure rules over how far a search has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

from cuda_l1.config import FIRST_PAIRS_PATIENCE, LEAST_PAIRS, SearchSettings
from cuda_l1.errors import UsageError
from cuda_l1.scoring import FIRST_PAIRS, ROOFLINE_SLACK

StopReason = Literal["time-budget", "evaluation-budget", "no-gain", "roofline", "exhausted", "interrupted"]

GAIN = 1.01
"""A speed-up counts as a gain when it is this many times the best before it."""
SHARE = 3
"""At most one part in three of a time budget goes to the baselines, and one is kept for the final."""
LATE_S = 10.0
"""How much later than its time budget a search may end, as far as can be foreseen."""
LEAST_FINAL_S = 5.0
"""What a final gets for its pairs even when the time is up: without one there is nothing to hand out."""

LEAST_REVIEW_S = 10.0
"""What a reviewer gets even when the time is up: an opinion that is always late would be none."""


@dataclass(frozen=True)
class Progress:
    """How far a search has come; seconds and microseconds as named."""

    elapsed_s: float = 0.0
    """Since the command began."""
    first_s: float = 0.0
    """Of these, for the candidate that was tried before the baselines."""
    evaluations: int = 0
    """Evaluations of proposed candidates that this run has paid for."""
    without_gain: int = 0
    """How many of them in a row brought no gain."""
    tried: int = 0
    """Candidates with a record, those that cost nothing included."""
    screen_s: float = 0.0
    """What one more screen is expected to take."""
    once_s: float = 0.0
    """What building and checking the best candidate once more is expected to take."""
    pair_s: float | None = None
    """What a pair of the final is expected to take; None before anything was measured."""
    best_us: float | None = None
    """Time of the best candidate on the objective clock."""


@dataclass(frozen=True)
class StopRules:
    """The limits of a search; None where there is no such limit."""

    budget_s: float | None = None
    budget_evaluations: int | None = None
    patience: int = 6
    final_budget_s: float = 60.0
    roofline_us: float | None = None

    @classmethod
    def of(cls, settings: SearchSettings, roofline_us: float | None = None) -> Self:
        """The rules that `settings` ask for. Raises UsageError for a budget that is not positive."""
        for budget in (settings.budget_s, settings.budget_evaluations):
            if budget is not None and not budget > 0:
                raise UsageError(f"budget {budget}: nothing fits into it; give e.g. 60s, or 20 for 20 evaluations")
        return cls(
            settings.budget_s, settings.budget_evaluations, settings.patience, settings.final_budget_s, roofline_us
        )

    def reason(self, progress: Progress) -> StopReason | None:
        """Why to stop now, or None to go on."""
        if self.roofline_us and progress.best_us and progress.best_us <= self.roofline_us * ROOFLINE_SLACK:
            return "roofline"
        if self.budget_evaluations is not None and progress.evaluations >= self.budget_evaluations:
            return "evaluation-budget"
        if self.spare_s(progress) < 0:
            return "time-budget"
        return "no-gain" if progress.without_gain >= self.patience else None

    def spare_s(self, progress: Progress) -> float:
        """Seconds left beyond one more screen and the final; below 0, that screen does not fit."""
        return self.left_s(progress) - progress.screen_s - self._kept_s(progress)

    def within_s(self, progress: Progress) -> float | None:
        """Seconds after which a screen that begins now is given up, so that the search ends in time; None: never."""
        return None if self.budget_s is None else self.left_s(progress) + LATE_S - self._kept_s(progress)

    def _kept_s(self, progress: Progress) -> float:
        # Slow baselines must not end a search before its first candidate: that one may use what is kept for the final.
        return self.reserve_s(progress) if progress.tried else 0.0

    def left_s(self, progress: Progress) -> float:
        """Seconds left of the time budget; infinite without one."""
        return float("inf") if self.budget_s is None else self.budget_s - progress.elapsed_s

    def reserve_s(self, progress: Progress) -> float:
        """Seconds kept for the final: what it is expected to take. One that takes more than its own budget, or a third
        of the whole, may rather be late."""
        most = self.final_budget_s if self.budget_s is None else min(self.final_budget_s, self.budget_s / SHARE)
        if progress.pair_s is None:
            return most
        slow_s = max(LEAST_PAIRS * progress.pair_s, FIRST_PAIRS_PATIENCE * most)
        expected_s = progress.once_s + min(FIRST_PAIRS * progress.pair_s, slow_s)
        return max(min(most, expected_s), expected_s - LATE_S)

    def final_s(self, progress: Progress) -> float:
        """Seconds in which a final beginning now may open pairs beyond its first five: what build and checks leave."""
        return min(self.final_budget_s, max(LEAST_FINAL_S, self.left_s(progress) - progress.screen_s))

    def review_s(self, progress: Progress) -> float:
        """Seconds for a second opinion now: half of what is left for candidates, so that a slow one ends no search."""
        return max(LEAST_REVIEW_S, self.spare_s(progress) / 2)

    def another_baseline(self, progress: Progress, expected_s: float = 0.0) -> bool:
        """Whether one more baseline may begin, which is expected to take so many seconds."""
        return self.budget_s is None or progress.elapsed_s - progress.first_s + expected_s < self.budget_s / SHARE

    def another_final(self, progress: Progress) -> bool:
        """Whether one more final fits, after one that did not hold up."""
        return self.left_s(progress) >= self.reserve_s(progress)
