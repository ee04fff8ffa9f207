"""Statistics over tasks and samples: pure functions from speed-ups and counts to figures.

`fast_p` is KernelBench's metric (Ouyang et al. 2025, arXiv 2502.10517, section 3.3). `pass_at_k` is the unbiased
estimator of Chen et al. 2021 (arXiv 2107.03374, equation 1). Intervals over tasks are Student's t on the logarithms,
95 %: they say how much a mean depends on which tasks are there, not how exact each task's figure is.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from cuda_l1 import ratios
from cuda_l1.report.cells import Ratio, Share
from cuda_l1.scoring import interval

GAIN = 1.01
"""CUDA-L1's tables count a speed-up from here on."""
FAST_P = (0.0, 1.0, 1.5, 2.0)
"""The thresholds at which fast_p is shown."""
SAMPLES_K = (1, 2, 5, 10, 20, 50, 100)
"""The k of pass@k, as far as there are so many samples of a task."""

LEAST_TASKS = 3
"""A mean over tasks has an interval from so many on: Student's factor over two is 12.7, which says nothing."""


class Quartiles(NamedTuple):
    """The values that a quarter, half and three quarters of all do not exceed."""

    lower: float
    median: float
    upper: float


def quartiles(values: Sequence[float]) -> Quartiles | None:
    """Quartiles by linear interpolation with both ends in the sample (numpy's default); None for fewer than two."""
    if len(values) < 2:
        return None
    return Quartiles(*statistics.quantiles(values, n=4, method="inclusive"))


def arithmetic_mean(values: Sequence[float]) -> float | None:
    """The mean, None where there is no value."""
    return statistics.fmean(values) if values else None


def geometric_mean(values: Sequence[float]) -> Ratio | None:
    """The geometric mean of positive speed-ups, with its interval over tasks from LEAST_TASKS on; None for no value.

    Raises ValueError for a value that is not positive.
    """
    if not values:
        return None
    logs = [math.log(value) for value in values]
    if len(logs) < LEAST_TASKS:
        return Ratio(values[0] if len(logs) == 1 else ratios.geometric_mean(values))
    return Ratio(*interval(logs, first=len(logs)))


def floored(value: float | None) -> float:
    """A speed-up against the best baseline by the rule that what is not improved, or failed, counts 1."""
    return max(1.0, value or 1.0)


def floored_mean(values: Sequence[float | None]) -> Ratio | None:
    """The geometric mean of speed-ups floored at 1, and so are its bounds; None where there is no task."""
    mean = geometric_mean([floored(value) for value in values])
    return mean if mean is None or mean.low is None else Ratio(mean.value, floored(mean.low), mean.high)


def share_above(values: Sequence[float | None], threshold: float) -> Share:
    """How many exceed `threshold`; None (failed) exceeds nothing."""
    return Share(sum(value is not None and value > threshold for value in values), len(values))


def fast_p(speedups: Sequence[float | None], p: float) -> float | None:
    """Share of tasks that are right and more than `p` times as fast; None in `speedups`: not right.

    None where there is no task.
    """
    if not speedups:
        return None
    return share_above(speedups, p).count / len(speedups)


def pass_at_k(samples: int, right: int, k: int) -> float:
    """The chance that one of `k` samples is right, when `right` of `samples` were: 1 - C(n-c, k) / C(n, k).

    With `right` counting the samples that are right *and* faster than p times, it is fast_p@k of one task. Raises
    ValueError unless 0 <= right <= samples and 1 <= k <= samples.
    """
    if not (0 <= right <= samples and 1 <= k <= samples):
        raise ValueError(f"pass@{k} of {right} right among {samples} samples is not defined")
    return 1.0 - math.comb(samples - right, k) / math.comb(samples, k)
