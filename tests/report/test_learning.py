"""The curves of a training run."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_l1.report.learning import Curve, Panel, curves, one_after_the_other, panels
from cuda_l1.report.site.axes import linear_ticks
from cuda_l1.report.site.learning import plot, write_page

ROWS = [
    {"step": 1, "loss": 3.0, "seconds": 1.5, "text": "hm"},
    {"step": 2, "loss": float("nan"), "validation_loss": 2.5},
    {"step": 3, "loss": 1.0, "is_done": True, "gradient_norm": 0.5},
    {"loss": 9.0},
]


def test_figures_that_belong_together_share_a_plot_and_others_have_their_own() -> None:
    assert panels(ROWS) == [
        Panel("Loss", (Curve("loss", ((1.0, 3.0), (3.0, 1.0))), Curve("validation_loss", ((2.0, 2.5),)))),
        Panel("Gradient norm", (Curve("gradient_norm", ((3.0, 0.5),)),)),
    ]
    levels = panels(
        [{"step": 0, "train_pass_rate": 0.5, "train_pass_rate_level_1": 0.4, "train_pass_rate_level_2": 0.6}]
    )
    assert [(panel.title, len(panel.curves)) for panel in levels] == [
        ("Right replies", 1),
        ("Right replies to training tasks by level", 2),
    ]


def test_a_step_that_was_repeated_after_an_interruption_counts_once() -> None:
    assert curves([{"step": 1, "loss": 5}, {"step": 2, "loss": 4}, {"step": 1, "loss": 3}])[0].points == (
        (1, 3),
        (2, 4),
    )


def test_trainings_one_after_the_other_have_running_steps() -> None:
    joined = one_after_the_other([[{"step": 1}, {"step": 4}], [], [{"step": 2, "loss": 1}]])
    assert [row["step"] for row in joined] == [1, 4, 6]


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_few_round_and_inside(low: float, width: float) -> None:
    ticks = linear_ticks(low, low + width)
    assert len(ticks) <= 7 and ticks == sorted(ticks)
    assert all(
        low - 1e-3 * width - 1e-3 * abs(low) <= tick <= low + width + 1e-3 * (width + abs(low)) for tick in ticks
    )


@pytest.mark.parametrize("points", [((3.0, 0.5),), ((0.0, 0.0), (1.0, 0.0)), ((0.0, -2.0), (10.0, 1e9))])
def test_a_plot_is_well_formed_and_finite(points: tuple[tuple[float, float], ...]) -> None:
    shown = plot(Panel("A <title>", (Curve("b & c", points),)))
    tree = ElementTree.fromstring(str(shown))
    numbers = [
        part for line in tree.iter("polyline") for pair in line.attrib["points"].split() for part in pair.split(",")
    ]
    assert numbers and all(math.isfinite(float(number)) for number in numbers)


def test_the_page_replaces_an_earlier_one(tmp_path: Path) -> None:
    for title in ("first", "second"):
        page = write_page("runs/<mine>", {"sft": panels(ROWS), title: []}, tmp_path / "report")
    text = page.read_text()
    assert "second" in text and "first" not in text and "runs/&lt;mine&gt;" in text
    assert text.count("<svg") == 2 and (page.parent / "style.css").is_file()
