"""Ratios of any size: computed so that they stay numbers, and rounded so that they never flatter."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

FARTHEST = 1e300
"""Figures beyond this, or its inverse, are told as it: what is computed from them stays a number."""
_LOG_FARTHEST = 700.0
"""Beyond its logarithm, and below that of the largest float."""


def within_floats(ratio: float) -> float:
    """A ratio, at most FARTHEST and at least its inverse."""
    return min(max(ratio, 1 / FARTHEST), FARTHEST)


def from_log(log_ratio: float) -> float:
    """The ratio of a logarithm, within the same bounds."""
    return within_floats(math.exp(log_within_floats(log_ratio)))


def geometric_mean(ratios: Sequence[float]) -> float:
    """Of at least one positive ratio, within the same bounds."""
    return from_log(statistics.fmean(map(math.log, ratios)))


def log_within_floats(log_ratio: float) -> float:
    """The logarithm of a ratio, as far as it is one of a number."""
    return min(max(log_ratio, -_LOG_FARTHEST), _LOG_FARTHEST)


def log_between(low: float, high: float) -> float:
    """log(high / low), of floats whose quotient may be none."""
    return math.log(high) - math.log(low)


def towards_one(value: float, digits: int = 2) -> float:
    """Round a speed-up towards 1, so that a printed figure never flatters."""
    scale: int = 10**digits
    if value * scale >= 2**53:  # it has no more digits, and somebody else's may be as large as floats are
        return value
    scaled = round(value * scale, 6)  # 1.14 * 100 is a little less than 114
    return float((math.floor(scaled) if value >= 1 else math.ceil(scaled)) / scale)
