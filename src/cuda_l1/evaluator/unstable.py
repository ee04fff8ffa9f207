"""A screen that would become its task's best is measured again before anybody believes it."""

from __future__ import annotations

import math
import statistics

from cuda_l1.evaluator.timing import Timer
from cuda_l1.ratios import from_log, towards_one
from cuda_l1.types import Candidate, Finding

UNSTABLE = 0.1


def measure_again(timer: Timer, candidate: Candidate, best_so_far: float | None) -> list[Finding]:
    """Beyond the best by more than 10 %, a second pair is timed at once; where it says another thing, a third, and the
    middle one stands (docs/adr/0043), with a finding. Raises Failure."""
    clock = timer.clocks[0]
    pairs = timer.pairs[:1]
    ratios = [pairs[0].log_ratio(clock, 1)]
    if best_so_far is None or math.exp(ratios[0]) <= best_so_far * (1 + UNSTABLE):
        return []
    for _ in range(2):
        pairs.append(timer.add_pair(candidate))
        ratios.append(pairs[-1].log_ratio(clock, 1))
        if abs(ratios[0] - ratios[1]) <= UNSTABLE:
            return []
    timer.pairs = [pairs[ratios.index(statistics.median(ratios))]]
    given = ", ".join(f"{towards_one(from_log(ratio)):.2f}x" for ratio in ratios)
    text = f"three pairs gave {given}; the middle one stands"
    return [Finding(check="unstable", severity="suspect", evidence=text)]
