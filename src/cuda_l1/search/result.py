"""What a search hands back."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, computed_field

from cuda_l1.search.stopping import StopReason
from cuda_l1.types import Clock, Frozen, Outcome, Record, Timing

Verdict = Literal["beats-best-baseline", "beats-eager", "no-improvement"]


class BaselineResult(Frozen):
    """How one baseline fared; the first of a search is eager."""

    name: str
    candidate_id: str
    outcome: Outcome | None
    """None when the time budget left no room for it."""
    speedup: float | None = None
    """Against eager, at `screen`, on the objective clock; 1 for eager itself."""
    detail: str = ""
    """Why it failed, or does not count."""
    counts: bool = True
    """Whether it may be the best one, where it is right."""


class NotConfirmed(Frozen):
    """A candidate that its screen saw to be faster, and why no final says so."""

    technique: str
    candidate_id: str
    screen_speedup: float
    """Against eager, on the objective clock."""
    why: str
    """One line."""


class Result(Frozen):
    """The outcome of one `optimize`. Every speed-up names its opponent and is on the clock of `clock`."""

    model_config = ConfigDict(extra="ignore")  # reading back what `model_dump` wrote: computed fields are computed anew

    task_id: str
    task_sha: str
    run: str
    clock: Clock
    winner: Record | None
    """The screen record of the chosen candidate; None when nothing beats eager."""
    final: Record | None
    """The new final of its artefact, measured after the choice: the only figures to quote."""
    unconfirmed: tuple[Record, ...] = ()
    """Finals of candidates that were tried before and did not hold up."""
    not_confirmed: tuple[NotConfirmed, ...] = ()
    """Candidates that looked faster, best first: those tried before `final`, or, without one, what stood in its way."""
    baselines: tuple[BaselineResult, ...] = ()
    best_baseline: str | None = None
    """The fastest accepted baseline of a class that may win; the others are in `baselines`."""
    stop_reason: StopReason
    evaluations: int
    """Evaluations paid for by this call: baselines, screens and finals."""
    tried: int | None = None
    """Candidates with a verdict in this search, baselines aside; None in results of versions that did not say."""
    duplicates: int
    """Proposals that cost nothing, because their verdict was known."""
    failures: tuple[str, ...] = ()
    """What the proposers could not write: `technique: why`, one line each."""
    wall_s: float

    @property
    def versus_eager(self) -> Timing | None:
        """The final's timing against eager."""
        return self.final.evaluation.timing("eager", self.clock) if self.final else None

    @property
    def versus_best_baseline(self) -> Timing | None:
        """The final's timing against the best baseline: the one that screens chose, or eager where that is the best or
        turns out faster in the final itself.

        None where that baseline failed in the final: eager must not stand in for it.
        """
        if self.final is None or self.best_baseline is None:
            return None
        if self.best_baseline == self.baselines[0].name:
            return self.versus_eager
        timing = self.final.evaluation.best_baseline_timing(self.clock)
        return fastest_of(timing, self.versus_eager) if timing and timing.opponent == self.best_baseline else None

    @property
    def held_against(self) -> str | None:
        """The baseline that the final is held against, by name; without a figure the one that was chosen."""
        timing = self.versus_best_baseline
        return timing.opponent if timing else self.best_baseline

    @computed_field  # type: ignore[prop-decorator]
    @property
    def outcome(self) -> Verdict:
        """What may be claimed: faster by more than the 95 % interval, and than what."""
        if self.final is None:
            return "no-improvement"
        return "beats-best-baseline" if is_faster(self.versus_best_baseline) else "beats-eager"

    @computed_field  # type: ignore[prop-decorator]
    @property
    def screen_speedup(self) -> float | None:
        """The winner's speed-up against eager in the search."""
        timing = self.winner.evaluation.timing("eager", self.clock) if self.winner else None
        return timing.speedup if timing else None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def shrinkage(self) -> float | None:
        """Share of the screen's speed-up that the final did not confirm: 0.05 is 5 % less, negative is more."""
        timing = self.versus_eager
        if timing is None or self.screen_speedup is None:
            return None
        return 1.0 - timing.speedup / self.screen_speedup


def fastest_of(baseline: Timing, eager: Timing | None) -> Timing:
    """Of two opponents in the same pairs the one that leaves the candidate less. Which baseline is the best was chosen
    by screens; eager, which is one too, is timed with it."""
    return eager if eager is not None and eager.speedup < baseline.speedup else baseline


def is_faster(timing: Timing | None) -> bool:
    """Whether the candidate is faster than the opponent by more than the 95 % interval."""
    if timing is None:
        return False
    return (timing.speedup if timing.speedup_low is None else timing.speedup_low) > 1.0
