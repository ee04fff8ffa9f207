"""What each technique of a candidate contributes, from the speed-ups of all subsets.

Speed-ups multiply, so effects are ratios: of a technique, speed-up with it over speed-up without it, all others equal.
What is said of one is decided by how far the measurements that it rests on spread: it is `not decided` otherwise.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cuda_l1.ratios import from_log, log_between, within_floats
from cuda_l1.scoring import interval
from cuda_l1.types import Timing


class Measured(NamedTuple):
    """A speed-up against eager, and how far off it may be."""

    speedup: float
    half: float = 0.0
    """Half-width, in log ratio: of the 95 % interval from two pairs on, of a single pair how far its samples spread."""
    pairs: int = 1
    is_interval: bool = False
    """Whether `half` is that of an interval."""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Of the interval, where there is one."""
        middle = math.log(self.speedup)
        return (from_log(middle - self.half), from_log(middle + self.half)) if self.is_interval else None


Subset = frozenset[str]
Speedups = Mapping[Subset, Measured]
"""Of each subset that has one; the empty subset is eager itself."""

NOISE = 1.05
"""Two screens of one candidate may differ by this: what rests on single pairs is an effect only beyond it. With
intervals it is what an effect must be known to be within to be called none."""
ADDING = {"more": "adds", "less": "harms", "same": "no effect"}
TOGETHER = {"more": "help each other", "less": "overlap", "same": "multiply"}
GATE = 0.2
"""Without a gatekeeper the others keep less than this share of the whole gain, as logarithms; with it they add some."""


@dataclass(frozen=True)
class Effect:
    """One technique. Each figure is None where a subset that it needs has no speed-up."""

    technique: str
    alone: float | None
    """Speed-up of the technique by itself."""
    in_all: float | None
    """Speed-up of all over that of all others."""
    mean: float | None
    """Geometric mean of what adding it does, over every subset of the others."""
    half: float | None
    """Half-width of that mean, in log ratio, from those of the speed-ups."""
    best_without: float
    """The highest speed-up of any subset without it; 1 where there is none above it."""
    verdict: str
    """`gatekeeper`, `adds`, `no effect`, `harms`, `not decided`, or `unknown`."""


@dataclass(frozen=True)
class Interaction:
    """Two techniques: their speed-up together over the product of their speed-ups alone."""

    first: str
    second: str
    ratio: float | None
    half: float | None
    """Its half-width, in log ratio."""
    verdict: str
    """`multiply` (neither changes what the other gives), `help each other`, `overlap`, `not decided`, or `unknown`."""


def measured(timings: Sequence[Timing]) -> Measured:
    """What several verdicts on one candidate say together, each against eager on one clock, the latest last.

    An interval where the latest has one, else that over all pairs of all of them. A single pair has no interval: what
    stands for it is how far its samples spread, from the tenth of them to the ninetieth.
    """
    latest = timings[-1]
    if latest.speedup_low is not None and latest.speedup_high is not None:
        half = log_between(latest.speedup_low, latest.speedup_high) / 2
        return Measured(within_floats(latest.speedup), half, len(latest.pairs), is_interval=True)
    pairs = [pair for timing in timings for pair in timing.pairs]
    if len(pairs) > 1:
        middle, low, high = interval([pair.log_ratio for pair in pairs], first=len(pairs))
        return Measured(middle, log_between(low, high) / 2, len(pairs), is_interval=True)
    spreads = [_spread(samples) for pair in pairs for samples in (pair.candidate_us, pair.opponent_us)]
    return Measured(within_floats(latest.speedup), math.hypot(*spreads))


def _spread(samples: Sequence[float]) -> float:
    """Half the distance between first and last decile, in logarithms."""
    if len(samples) < 2 or min(samples) <= 0:
        return 0.0
    deciles = statistics.quantiles([within_floats(sample) for sample in samples], n=10, method="inclusive")
    return log_between(deciles[0], deciles[-1]) / 2


def effects(techniques: Sequence[str], speedups: Speedups) -> list[Effect]:
    """What each of `techniques` contributes, in their order."""
    known = dict(speedups) | {frozenset[str](): Measured(1.0, is_interval=True)}
    return [_effect(technique, frozenset(techniques), known) for technique in techniques]


def interactions(techniques: Sequence[str], speedups: Speedups) -> list[Interaction]:
    """Every pair of `techniques`, in their order."""
    found = []
    for first, second in itertools.combinations(techniques, 2):
        one, two = speedups.get(frozenset({first})), speedups.get(frozenset({second}))
        both = speedups.get(frozenset({first, second}))
        if one and two and both:
            half = math.hypot(one.half, two.half, both.half)
            ratio = within_floats(both.speedup / one.speedup / two.speedup)
            found.append(Interaction(first, second, ratio, half, _said(ratio, half, (one, two, both), TOGETHER)))
        else:
            found.append(Interaction(first, second, None, None, "unknown"))
    return found


def _effect(technique: str, everything: Subset, known: Speedups) -> Effect:
    steps = [
        (known[subset | {technique}], known[subset])
        for subset in known
        if technique not in subset and subset | {technique} in known
    ]
    alone, whole, others = (known.get(s) for s in (frozenset({technique}), everything, everything - {technique}))
    best_without = max((m for subset, m in known.items() if technique not in subset), key=lambda m: m.speedup)
    gains = [log_between(without.speedup, made_with.speedup) for made_with, without in steps]
    mean = from_log(statistics.fmean(gains)) if gains else None
    rests_on = [m for step in steps for m in step]
    # Each subset stands in one step only, so their errors are independent.
    half = math.hypot(*(m.half for m in rests_on)) / len(steps) if steps else None
    is_gate = whole is not None and alone is not None and _is_gate(alone, best_without, whole)
    return Effect(
        technique,
        alone=alone.speedup if alone else None,
        in_all=within_floats(whole.speedup / others.speedup) if whole and others else None,
        mean=mean,
        half=half,
        best_without=best_without.speedup,
        verdict="gatekeeper" if is_gate else _said(mean, half, rests_on, ADDING),
    )


def _said(ratio: float | None, half: float | None, rests_on: Sequence[Measured], names: Mapping[str, str]) -> str:
    """What a ratio is called: more or less where its interval excludes 1 (of single pairs, where it is beyond the noise
    by more than their spread), the same where it is known to be within the noise."""
    if ratio is None or half is None:
        return "unknown"
    effect, noise = math.log(ratio), math.log(NOISE)
    if abs(effect) > half + (0.0 if all(m.is_interval for m in rests_on) else noise):
        return names["more"] if effect > 0 else names["less"]
    return names["same"] if abs(effect) <= noise and half <= noise else "not decided"


def _is_gate(alone: Measured, best_without: Measured, whole: Measured) -> bool:
    before = alone if alone.speedup > 1.0 else Measured(1.0)
    added = log_between(before.speedup, whole.speedup) - math.hypot(whole.half, before.half)
    least = math.log(whole.speedup) - whole.half
    return added > math.log(NOISE) and math.log(best_without.speedup) + best_without.half < GATE * least
