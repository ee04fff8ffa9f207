"""Marks on logarithmic axes, also where little is to be shown."""

from __future__ import annotations

import pytest

from cuda_l1.report.site.axes import WIDTH, Frame, decades
from cuda_l1.report.site.plots import Place, under_roofs
from cuda_l1.report.site.write import with_code


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


def test_a_label_at_the_end_of_an_axis_stays_in_the_plot() -> None:
    axes = str(Frame((0.0, 522.0), (0.0, 1.0)).axes("microseconds", "", (0, 261, 522123), (), ""))
    assert f'x="{WIDTH}" ' in axes and 'text-anchor="end">522123<' in axes and 'text-anchor="middle">261<' in axes


def test_roofs_next_to_one_another_share_a_label() -> None:
    plot = str(under_roofs({"a": [Place("t", 1.0, 5.0, "")]}, 1000.0, {"fp16": 9e5, "tf32": 8e5, "fp32": 6e4}, "roofs"))
    assert ">fp16, tf32<" in plot and ">fp32<" in plot


@pytest.mark.parametrize(
    ("told", "shown"),
    [("`a<b` of c", "<code>a&lt;b</code> of c"), ("5` > 3", "5` &gt; 3"), ("plain", "plain"), ("", "")],
)
def test_what_stands_between_backticks_is_code(told: str, shown: str) -> None:
    assert str(with_code(told)) == shown
