"""Pure functions from measurements to figures: interval, speed-up, reward, advantage. No torch, no I/O.

Formulas: Student's t interval on the mean of log ratios; Stein (1945), "A two-sample test for a linear hypothesis
whose power is independent of the variance", for the number of pairs; Welford (1962), "Note on a method for calculating
corrected sums of squares and products", for running moments; CUDA-L1 (arXiv 2507.14111) for the smoothed reward, GRPO
(arXiv 2402.03300) for the advantage in a group.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from cuda_l1.config import COMPAT, Precision
from cuda_l1.exactness import at_least_as_exact, least_exact, less_exact
from cuda_l1.ratios import from_log, log_within_floats, towards_one
from cuda_l1.types import Clock, Environment, Evaluation, other_clock, unsound

# Two-sided 95 % quantiles of Student's t, index = degrees of freedom - 1.
_T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
        2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086)  # fmt: skip

JUMP = 2.0
"""A speed-up of this many times the best before it is a jump: known attacks gain that and more, single steps of an
honest search rarely do."""
ROOFLINE_SLACK = 1.05
"""Measuring is no finer than this: a time of at most so many times the roofline has reached it, and only one that is
shorter by more than this factor lies beyond it."""

FIRST_PAIRS, MAX_PAIRS = 5, 20
"""Pairs of processes that a `final` times before it decides how many it needs, and how many it times at the most."""


def t_quantile(degrees: int) -> float:
    """Two-sided 95 % quantile of Student's t; beyond 20 degrees of freedom the value at 20 (slightly too wide)."""
    return _T95[min(degrees, len(_T95)) - 1]


def target_half_width(opponent_us: float) -> float:
    """The half-width of the log interval a `final` aims at: 1 %, 2 % from 20 to 100 us, 3 % below 20 us."""
    if opponent_us < 20:
        return 0.03
    return 0.02 if opponent_us < 100 else 0.01


def pairs_needed(first: Sequence[float], half_width: float) -> int:
    """Stein's second stage: total number of pairs from the standard deviation of the first five log ratios."""
    spread = statistics.stdev(first)
    wanted = math.ceil((t_quantile(len(first) - 1) * spread / half_width) ** 2)
    return max(len(first), min(MAX_PAIRS, wanted))


RESOLUTION = 0.002
"""Half-width, in log ratio, that no interval is below: what pairs of one evaluation share does not show in them. Two
copies of one candidate differ by up to 0.24 % on an H100 (docs/adr/0014)."""


def interval(log_ratios: Sequence[float], first: int = FIRST_PAIRS) -> tuple[float, float, float]:
    """(speed-up, low, high) from log(t_opponent / t_candidate) per pair.

    The mean is over all pairs; t and standard deviation are those of the first `first` (Stein's rule keeps the coverage
    exact when the number of pairs was chosen from them), or of all where that is greater, since a pair that others
    disturbed may be among the later ones; with RESOLUTION in quadrature. Raises ValueError for fewer than two pairs.
    """
    log_ratios = [log_within_floats(ratio) for ratio in log_ratios]
    head = log_ratios[:first]
    if len(head) < 2:
        raise ValueError("an interval needs at least two pairs")
    mean = statistics.fmean(log_ratios)
    spread = max(map(statistics.stdev, (head, log_ratios))) / math.sqrt(len(log_ratios))
    half = math.hypot(t_quantile(len(head) - 1) * spread, RESOLUTION)
    return from_log(mean), from_log(mean - half), from_log(mean + half)


def is_confined(place: Environment) -> bool:
    """Whether candidates ran behind a wall; at sandbox rung R0 they could have changed the verdict itself."""
    return place.rung != "R0"


def counts(evaluation: Evaluation, precision: Precision = "default", *, is_eager: bool = False) -> bool:
    """Whether a result may win or be exported: accepted by a protocol of ours, confined, unsuspected, exact enough.

    What a verdict suspects of eager does not matter: it has no figure of its own that could be wrong, against itself it
    is 1 by definition.
    """
    is_right = evaluation.accepted and evaluation.precision_class is not None
    return is_right and not why_not(evaluation, precision, is_eager=is_eager)


def why_not(evaluation: Evaluation, precision: Precision = "default", *, is_eager: bool = False) -> str:
    """Why a right result does not count, in words; empty where it counts, or is not right."""
    found = evaluation.correctness
    if not evaluation.accepted or found is None or found.precision_class is None:
        return ""
    if evaluation.protocol in COMPAT or not is_confined(evaluation.environment):
        return "under a protocol of others" if evaluation.protocol in COMPAT else "not confined"
    suspects = () if is_eager else evaluation.disqualifying
    exact = at_least_as_exact(found.precision_class, least_exact(precision, found.task_class))
    said = "" if exact else less_exact(found)
    return f"suspect for {', '.join(dict.fromkeys(one.check for one in suspects))}" if suspects else said


def in_headline(evaluation: Evaluation, precision: Precision = "default", *, is_eager: bool = False) -> bool:
    """Whether a result may stand in a headline, and in a mean of a report: it counts, and its task is sound."""
    return counts(evaluation, precision, is_eager=is_eager) and not unsound(evaluation.task_flags)


def speedup(evaluation: Evaluation, clock: Clock | None = None, *, is_eager: bool = False) -> float | None:
    """Speed-up against eager on `clock`, or None when there is none.

    Eager against itself is 1 by definition; what its own verdict says of that is noise.
    """
    timing = evaluation.timing("eager", clock)
    if timing is None:
        return None
    return 1.0 if is_eager else timing.speedup


def best_baseline(speedups: Mapping[str, float]) -> str | None:
    """The name of the fastest baseline, by the speed-ups against eager of all that count; of equals the first."""
    return max(speedups, key=speedups.__getitem__, default=None)


def reward(evaluation: Evaluation, clock: Clock | None = None, precision: Precision = "default") -> float:
    """t_reference / t_candidate, 0 on failure; at most 1 when suspected, too inexact, or slower on the other clock."""
    value = speedup(evaluation, clock) if evaluation.accepted else None
    if value is None:
        return 0.0
    if not counts(evaluation, precision) or slower_on_other_clock(evaluation, clock):
        return min(value, 1.0)
    return value


def jump(
    evaluation: Evaluation,
    best_before: float | None,
    *,
    clock: Clock | None = None,
    precision: Precision = "default",
    roofline_us: float | None = None,
) -> str | None:
    """Why a reward is hard to believe, in words, or None where it is not.

    It is where it is at least `JUMP` times the best speed-up known before (`best_before`, and eager's 1), or where the
    candidate takes less time than moving the bytes of its inputs and outputs would (`roofline_us`, on the same clock).
    What earns no more than the reference, because it failed or is suspected already, is no jump.
    """
    value, timing = reward(evaluation, clock, precision), evaluation.timing("eager", clock)
    if timing is None or value <= 1.0:
        return None
    best = max(best_before or 1.0, 1.0)
    if value >= JUMP * best:
        own, before = f"{towards_one(value):.2f}x", f"{towards_one(best):.2f}x"
        return f"{own} against eager is {value / best:.1f} times the best before it ({before})"
    if roofline_us and timing.candidate_us * ROOFLINE_SLACK < roofline_us:
        return f"{timing.candidate_us:.1f} us is less than moving its inputs and outputs takes ({roofline_us:.1f} us)"
    return None


def slower_on_other_clock(evaluation: Evaluation, clock: Clock | None = None) -> bool:
    """Whether the candidate loses to eager on the other of the two scored clocks beyond its noise.

    With an interval: its upper end lies below 1. Without one (`screen`): slower by more than 10 %.
    """
    timing = evaluation.timing("eager", other_clock(clock or evaluation.default_clock))
    if timing is None:
        return False
    return timing.speedup_high < 1.0 if timing.speedup_high is not None else timing.speedup < 0.9


# ── From rewards to advantages ────────────────────────────────────────────────────────────────────

Shaping = Literal["raw", "smoothed", "log", "rank"]
Scale = Literal["group", "batch", "none"]
SCALE_EPSILON = 1e-4
"""Added to a standard deviation that is divided by; TRL's."""


@dataclass(frozen=True, slots=True)
class Moments:
    """The running mean and standard deviation of a task's raw rewards."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    """Sum of the squared distances from the mean."""

    @property
    def deviation(self) -> float:
        """Of the population seen so far; 0 before the second reward."""
        return math.sqrt(self.squares / self.count) if self.count else 0.0

    def after(self, rewards: Iterable[float]) -> Moments:
        """Those of all rewards so far and `rewards`, by Welford's recurrence."""
        count, mean, squares = self.count, self.mean, self.squares
        for reward in rewards:
            count += 1
            distance = reward - mean
            mean += distance / count
            squares += distance * (reward - mean)
        return Moments(count, mean, squares)


def smoothed(reward: float, moments: Moments, clip: float, noise: float = 0.0) -> float:
    """clip((r - mu) / sigma, -clip, clip): never falls as `reward` rises, so that no failure (0) passes a success.

    `noise`: the share of mu that sigma is at least, since what is measured twice differs by so much; 0 is CUDA-L1's
    formula. Where that leaves 0 it is 0 for a reward like all so far, and the limit for any other.
    """
    distance, deviation = reward - moments.mean, max(moments.deviation, noise * moments.mean)
    if deviation == 0.0:
        return math.copysign(clip, distance) if distance else 0.0
    return max(-clip, min(clip, distance / deviation))


def shaped(
    rewards: Sequence[float], shaping: Shaping, moments: Moments, clip: float, noise: float = 0.0
) -> list[float]:
    """What the raw rewards (0 for a failure) of one group count; each of the four keeps their order.

    `raw`: as they are; `smoothed`: by `moments`, `clip` and `noise`; `log`: log(1 + r), which is 0 for a failure;
    `rank`: how many of the group are worse, and half of those that are as good.
    """
    if shaping == "smoothed":
        return [smoothed(reward, moments, clip, noise) for reward in rewards]
    if shaping == "log":
        return [math.log1p(reward) for reward in rewards]
    if shaping == "rank":
        return [sum(other < r for other in rewards) + (rewards.count(r) - 1) / 2 for r in rewards]
    return list(rewards)


def advantages(groups: Sequence[Sequence[float | None]], scale: Scale = "group") -> list[list[float]]:
    """How much better than its group each reply is: (r - mean of the group) / (standard deviation + SCALE_EPSILON).

    The standard deviation (with Bessel's correction) is that of the group, that of all groups (`batch`), or left out
    (`none`). None stands for a reply that could not be judged: it counts nowhere, and its advantage is 0.
    """
    everything = _deviation([reward for group in groups for reward in group if reward is not None])
    found = []
    for group in groups:
        known = [reward for reward in group if reward is not None]
        mean = math.fsum(known) / len(known) if known else 0.0
        divisors = {"group": _deviation(known), "batch": everything, "none": 1.0 - SCALE_EPSILON}
        found.append([0.0 if r is None else (r - mean) / (divisors[scale] + SCALE_EPSILON) for r in group])
    return found


def _deviation(rewards: Sequence[float]) -> float:
    return statistics.stdev(rewards) if len(rewards) > 1 else 0.0
