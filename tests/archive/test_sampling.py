"""The distribution of draws against the formula of the paper."""

from __future__ import annotations

import math
from collections import Counter
from itertools import permutations
from random import Random

import pytest

from cuda_l1.archive.sampling import Bucket, by_buckets, deranged, probabilities, uniformly

BUCKETS = [Bucket(-1, 5, -0.05), Bucket(0, 40, 0.04), Bucket(3, 10, 0.33), Bucket(9, 3, 0.95), Bucket(12, 1, 1.2)]
TAU = 0.7
DRAWS = 20_000


def chi_square(observed: Counter[object], expected: dict[object, float]) -> float:
    """The statistic of Pearson's test: sum of (observed - expected)^2 / expected."""
    assert set(observed) <= set(expected)
    assert min(expected.values()) >= 5
    return sum((observed[key] - wanted) ** 2 / wanted for key, wanted in expected.items())


def critical(degrees: int, z: float = 3.090) -> float:
    """The 99.9 % quantile of chi-square, by Wilson and Hilferty's approximation."""
    return degrees * (1 - 2 / (9 * degrees) + z * math.sqrt(2 / (9 * degrees))) ** 3


def by_hand() -> list[float]:
    """exp((s_i - mu) / tau) over its sum, written down as the paper does."""
    means = [bucket.mean for bucket in BUCKETS]
    mu = sum(means) / len(means)
    tau = TAU * math.sqrt(sum((s - mu) ** 2 for s in means) / len(means))
    weights = [math.exp((s - mu) / tau) for s in means]
    return [weight / sum(weights) for weight in weights]


def test_one_bucket_is_drawn_by_the_formula() -> None:
    rng = Random(1)
    observed = Counter(by_buckets(BUCKETS, 1, TAU, rng)[0].bucket.number for _ in range(DRAWS))
    expected = {bucket.number: DRAWS * p for bucket, p in zip(BUCKETS, by_hand(), strict=True)}
    assert chi_square(Counter(observed), dict(expected)) < critical(len(BUCKETS) - 1)


def test_two_buckets_are_drawn_one_after_the_other() -> None:
    rng, p = Random(2), by_hand()
    observed = Counter(
        frozenset(place.bucket.number for place in by_buckets(BUCKETS, 2, TAU, rng)) for _ in range(DRAWS)
    )
    expected: dict[object, float] = {}
    for i, j in permutations(range(len(BUCKETS)), 2):
        pair = frozenset({BUCKETS[i].number, BUCKETS[j].number})
        expected[pair] = expected.get(pair, 0.0) + DRAWS * p[i] * p[j] / (1 - p[i])
    assert chi_square(Counter(observed), expected) < critical(len(expected) - 1)


def test_inside_a_bucket_and_without_buckets_all_are_alike() -> None:
    rng = Random(3)
    ranks = Counter(by_buckets(BUCKETS[1:2], 1, TAU, rng)[0].rank for _ in range(DRAWS))
    assert chi_square(Counter(ranks), dict.fromkeys(range(40), DRAWS / 40)) < critical(39)
    anywhere = Counter((place.bucket.number, place.rank) for _ in range(DRAWS) for place in uniformly(BUCKETS, 2, rng))
    expected = {(bucket.number, rank): 2 * DRAWS / 59 for bucket in BUCKETS for rank in range(bucket.size)}
    assert chi_square(Counter(anywhere), dict(expected)) < 1.2 * critical(58)


def test_the_test_sees_a_wrong_distribution() -> None:
    rng = Random(4)
    observed = Counter(by_buckets(BUCKETS, 1, TAU * 1.1, rng)[0].bucket.number for _ in range(DRAWS))
    expected = {bucket.number: DRAWS * p for bucket, p in zip(BUCKETS, by_hand(), strict=True)}
    assert chi_square(Counter(observed), dict(expected)) > critical(len(BUCKETS) - 1)


@pytest.mark.parametrize("means", [[0.3], [0.2, 0.2], [-1e300, 1e300], [0.0, 1e-300], [0.1] * 7])
@pytest.mark.parametrize("temperature", [1e-6, 0.5, 1e6])
def test_probabilities_are_finite_and_sum_to_one(means: list[float], temperature: float) -> None:
    found = probabilities(means, temperature)
    assert math.isclose(sum(found), 1.0)
    assert all(0.0 <= p <= 1.0 for p in found)


def test_a_cold_softmax_still_draws_different_buckets() -> None:
    assert {place.bucket.number for place in by_buckets(BUCKETS, 3, 1e-9, Random(0))} >= {12}
    assert len({place.bucket.number for place in by_buckets(BUCKETS, 5, 1e-9, Random(0))}) == 5


def test_nothing_to_draw_from_is_no_error() -> None:
    assert by_buckets([], 2, 0.5, Random(0)) == []
    assert uniformly([], 2, Random(0)) == []
    assert deranged([], Random(0)) == [] and deranged([1.0], Random(0)) == [1.0]
