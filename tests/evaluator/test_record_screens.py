"""A screen that would lead is measured again, and where two pairs differ the middle one of three stands."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cuda_l1.evaluator.unstable import measure_again
from cuda_l1.types import Finding


class Pair:
    def __init__(self, speedup: float) -> None:
        self.speedup = speedup

    def log_ratio(self, clock: str, opponent: int) -> float:
        return math.log(self.speedup)


def measured(speedups: list[float], best_so_far: float | None) -> tuple[list[float], list[float], list[Finding]]:
    """What stands, what was not needed, and what is said, when pairs show `speedups` one after the other."""
    left = [Pair(speedup) for speedup in speedups]
    timer: Any = SimpleNamespace(clocks=("call",), pairs=[left.pop(0)])

    def add_pair(candidate: object) -> Pair:
        timer.pairs.append(left.pop(0))
        return cast(Pair, timer.pairs[-1])

    timer.add_pair = add_pair
    candidate: Any = None
    findings = measure_again(timer, candidate, best_so_far)
    return [pair.speedup for pair in timer.pairs], [pair.speedup for pair in left], findings


@pytest.mark.parametrize(
    ("speedups", "best_so_far", "stand", "left"),
    [
        ([2.0, 9.0, 9.0], None, [2.0], [9.0, 9.0]),  # nobody asked
        ([1.0, 9.0, 9.0], 1.0, [1.0], [9.0, 9.0]),  # no record
        ([2.0, 2.1, 9.0], 1.0, [2.0, 2.1], [9.0]),  # the second says the same
    ],
)
def test_what_is_no_record_or_holds_needs_no_third_pair(
    speedups: list[float], best_so_far: float | None, stand: list[float], left: list[float]
) -> None:
    assert measured(speedups, best_so_far) == (stand, left, [])


@pytest.mark.parametrize("speedups", [[3.6, 0.8, 3.4], [9.0, 3.3, 3.4], [2.3, 5.3, 3.4]])
def test_of_three_the_middle_one_stands(speedups: list[float]) -> None:
    stand, _, findings = measured(speedups, 1.0)
    assert stand == [3.4]
    assert [(f.check, f.severity) for f in findings] == [("unstable", "suspect")]
    assert all(f"{speedup:.2f}x" in findings[0].evidence for speedup in speedups)
