"""Which exemplars are drawn, as pure functions of counts and scores: no database, no I/O.

A score is the natural logarithm of a reward. The formula is that of CUDA-L1 (arXiv 2507.14111, section on contrastive
exemplars): P(B_i) = exp((s_i - mu) / tau) / sum_j exp((s_j - mu) / tau), where s_i is the mean score of bucket B_i and
mu the mean over buckets. The paper gives no tau; here it is in units of the standard deviation of the s_i, so that it
means the same for a task where 1.1x is much and for one where 50x is.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

BINS = 100
"""Bins per unit of score: buckets of any width that is a multiple of 0.01 are sums of them."""


class Bucket(NamedTuple):
    """Variants whose scores lie in [number * width, (number + 1) * width)."""

    number: int
    size: int
    mean: float
    """Of their scores."""


class Place(NamedTuple):
    """One variant, by its rank among those of its bucket in ascending order of score."""

    bucket: Bucket
    rank: int


def bin_of(score: float) -> int:
    """The number of the bin that holds a score: floor(score * BINS)."""
    return math.floor(score * BINS)


def probabilities(means: Sequence[float], temperature: float) -> list[float]:
    """P(B_i) of the formula above; equal where all means are. `temperature` is tau over their standard deviation."""
    mean, spread = statistics.fmean(means), statistics.pstdev(means)
    tau = temperature * spread
    if tau <= 0.0:
        return [1.0 / len(means)] * len(means)
    highest = (max(means) - mean) / tau  # cancels in the quotient; without it exp could overflow
    weights = [math.exp((value - mean) / tau - highest) for value in means]
    return [weight / math.fsum(weights) for weight in weights]


def by_buckets(buckets: Sequence[Bucket], count: int, temperature: float, rng: Random) -> list[Place]:
    """`count` variants of `count` different buckets: a bucket by the formula, then one inside it uniformly.

    Buckets are drawn one after the other without putting them back. Where there are fewer than `count`, each gives
    one and then another round begins with those that have variants left, so that no variant is drawn twice and fewer
    than `count` come only where there are fewer variants.
    """
    drawn = dict.fromkeys(range(len(buckets)), 0)
    weights = dict(enumerate(probabilities([bucket.mean for bucket in buckets], temperature))) if buckets else {}
    order: list[int] = []
    while len(order) < count:
        left = [i for i in drawn if drawn[i] < buckets[i].size]
        if not left:
            break
        for index in _without_replacement(left, weights, count - len(order), rng):
            drawn[index] += 1
            order.append(index)
    return [Place(buckets[i], rank) for i in drawn for rank in rng.sample(range(buckets[i].size), drawn[i])]


def uniformly(buckets: Sequence[Bucket], count: int, rng: Random) -> list[Place]:
    """`count` different variants, each as likely as any other."""
    total = sum(bucket.size for bucket in buckets)
    return [_at(buckets, rank) for rank in rng.sample(range(total), min(count, total))]


def deranged(scores: Sequence[float], rng: Random) -> list[float]:
    """The same scores, rotated so that each of two or more stands in another place."""
    if len(scores) < 2:
        return list(scores)
    by = rng.randrange(1, len(scores))
    return [*scores[by:], *scores[:by]]


def _without_replacement(items: Sequence[int], weights: dict[int, float], count: int, rng: Random) -> list[int]:
    rest = list(items)
    chosen: list[int] = []
    while rest and len(chosen) < count:
        # Weights that underflowed would make an impossible draw: such buckets are then as likely as each other.
        wanted = [weights[item] for item in rest] if any(weights[item] for item in rest) else None
        item = rng.choices(rest, wanted)[0]
        rest.remove(item)
        chosen.append(item)
    return chosen


def _at(buckets: Sequence[Bucket], rank: int) -> Place:
    for bucket in buckets:
        if rank < bucket.size:
            return Place(bucket, rank)
        rank -= bucket.size
    raise IndexError("rank beyond the last variant")
