"""Statistics against numbers computed by hand."""

from __future__ import annotations

import itertools
import math

import pytest

from cuda_l1.report.aggregates import (
    arithmetic_mean,
    fast_p,
    floored,
    floored_mean,
    geometric_mean,
    pass_at_k,
    quartiles,
    share_above,
)
from cuda_l1.report.cells import Ratio, Share


def test_quartiles_are_interpolated_with_both_ends_in_the_sample() -> None:
    assert quartiles([4.0, 1.0, 3.0, 2.0, 5.0]) == (2.0, 3.0, 4.0)
    assert quartiles([1.0, 2.0, 3.0, 10.0]) == pytest.approx((1.75, 2.5, 4.75))
    assert quartiles([1.0]) is None


def test_means_of_nothing_are_nothing() -> None:
    assert arithmetic_mean([]) is None
    assert geometric_mean([]) is None
    assert arithmetic_mean([1.0, 2.0, 6.0]) == 3.0


def test_a_floored_mean_and_its_bounds_are_never_below_one() -> None:
    found, plain = floored_mean([None, 0.5, 35.3]), geometric_mean([1.0, 1.0, 35.3])
    assert found is not None and plain is not None and plain.low is not None and plain.low < 1.0
    assert (found.value, found.low, found.high) == (plain.value, 1.0, plain.high)
    assert floored_mean([]) is None and floored_mean([0.5]) == Ratio(1.0)


def test_the_interval_of_a_geometric_mean_is_students_on_the_logarithms() -> None:
    found = geometric_mean([1.0, 2.0, 4.0])
    assert found is not None and found.low is not None and found.high is not None
    half = 4.303 * math.log(2.0) / math.sqrt(3)  # standard deviation of log 1, log 2, log 4 is log 2
    assert found.value == pytest.approx(2.0)
    assert math.log(found.high / 2.0) == pytest.approx(math.hypot(half, 0.002))
    assert math.log(2.0 / found.low) == pytest.approx(math.hypot(half, 0.002))
    with pytest.raises(ValueError):
        geometric_mean([0.0, 1.0])


def test_a_mean_over_less_than_three_tasks_has_no_interval() -> None:
    assert geometric_mean([3.0]) == Ratio(3.0)
    for found in (geometric_mean([1.0, 5.29]), floored_mean([None, 5.29])):
        assert found is not None and (found.low, found.high) == (None, None)
        assert found.value == pytest.approx(2.3)
    for values in ([0.0], [0.0, 1.0]):
        with pytest.raises(ValueError):
            geometric_mean(values)


@pytest.mark.parametrize(("value", "counted"), [(None, 1.0), (0.25, 1.0), (1.0, 1.0), (3.0, 3.0)])
def test_what_is_not_improved_counts_one(value: float | None, counted: float) -> None:
    assert floored(value) == counted


def test_fast_p_counts_right_and_faster_over_all() -> None:
    speedups = [None, 0.5, 1.0, 1.2, 1.5, 3.0]
    assert [fast_p(speedups, p) for p in (0.0, 1.0, 1.5, 2.0)] == pytest.approx([5 / 6, 3 / 6, 1 / 6, 1 / 6])
    assert fast_p([], 0.0) is None
    assert share_above([1.01, 1.02, None], 1.01) == Share(1, 3)


def test_pass_at_k_is_the_share_of_draws_that_hold_a_right_one() -> None:
    for samples, right, k in itertools.product((4, 5), (0, 1, 3), (1, 2, 4)):
        draws = list(itertools.combinations(range(samples), k))
        hits = sum(any(one < right for one in draw) for draw in draws)
        assert pass_at_k(samples, right, k) == pytest.approx(hits / len(draws))


@pytest.mark.parametrize(("samples", "right", "k"), [(3, 4, 1), (3, 1, 4), (3, 1, 0), (3, -1, 1)])
def test_pass_at_k_of_too_few_samples_is_not_defined(samples: int, right: int, k: int) -> None:
    with pytest.raises(ValueError, match="not defined"):
        pass_at_k(samples, right, k)
