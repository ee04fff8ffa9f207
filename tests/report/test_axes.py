"""Marks on logarithmic axes, also where little is to be shown."""

from __future__ import annotations

import pytest

from cuda_l1.report.site.axes import decades


@pytest.mark.parametrize(
    ("low", "high", "marks"),
    [
        (0.5, 200.0, [1.0, 10.0, 100.0]),
        (2.0, 8.0, [4.0]),
        (3.0, 3.0, [3.0]),
        (10.0, 10.0, [10.0]),
        (1.0, 1e12, [1.0, 100.0, 1e4, 1e6, 1e8, 1e10, 1e12]),
    ],
)
def test_decades_between_two_numbers(low: float, high: float, marks: list[float]) -> None:
    assert decades(low, high) == pytest.approx(marks)
