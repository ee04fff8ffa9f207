"""The summary counts what may be counted, and says what it leaves out."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from csv_table import Row, Table, read_rows
from suite_rows import COLUMNS
from suite_summary import comparison, geometric, quartiles, summary, whole_suite, with_interval


def row(task: str, outcome: str = "beats-best-baseline", best: float | None = 2.0, **values: str) -> Row:
    figures = {} if best is None else {
        "speedup_best_baseline": f"{best}", "speedup_best_baseline_low": f"{best * 0.98}",
        "speedup_best_baseline_high": f"{best * 1.02}", "speedup_eager": f"{best * 2}",
    }  # fmt: skip
    made = {"task": task, "dtype": "fp32", "outcome": outcome, "sound": "yes", "budget": "60s", "wall_s": "50",
            "baselines": "eager 1x", "resumed": "no", "device_name": "Test GPU"}  # fmt: skip
    return dict.fromkeys(COLUMNS, "") | made | figures | values


@pytest.mark.parametrize("device", ["cpu", "h100", "h200"])
def test_the_committed_tables_are_those_of_the_committed_rows(device: str) -> None:
    folder = Path(__file__).parents[2] / "docs" / "results" / device
    rows = read_rows(folder / "suite.csv", ("task", "dtype"))
    made, committed = summary(rows, whole_suite(rows)), (folder / "suite.md").read_text()
    tables = made[made.index("Budget a task") :]
    assert "| linear_sum |" in tables and committed.endswith(tables)


def line(text: str, beginning: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(f"| {beginning} "))


def overview(rows: list[Row], *missing: str) -> str:
    return summary(rows, [(r["task"], r["dtype"]) for r in rows] + [(name, "fp32") for name in missing])


def test_means_floor_at_one_and_show_the_figure_without_the_floor() -> None:
    text = overview([row("a", best=4.0), row("b", "no-improvement", 0.25), row("c", "no-improvement", None)])
    assert "1.58x" in line(text, "vs best baseline, geometric mean")  # the cube root of 4 * 1 * 1, towards 1
    assert "1.00x" in line(text, "the same without the floor at 1")
    assert "2 measured" in line(text, "the same without the floor at 1")
    assert "1 of 3" in line(text, "faster than the best baseline by more than the interval")


def test_a_win_over_eager_alone_does_not_fall_below_one() -> None:
    text = overview([row("a", "beats-eager", 0.5), row("b", best=1.0), row("c", best=1.0)])
    assert "1.00x (1.00 to 1.00)" in line(text, "vs best baseline, geometric mean")


def test_unsound_and_failed_tasks_are_named_and_stand_in_no_mean() -> None:
    rows = [row("a"), row("b"), row("c", best=1000.0, sound="no", task_flags="degenerate"),
            row("d", "error", None, detail="InfrastructureError: no GPU")]  # fmt: skip
    text = overview(rows, "e")
    assert "4" not in line(text, "of these in the figures below")
    assert "3 of 5" in line(text, "tasks with a verdict")
    assert "2.00x" in line(text, "vs best baseline, highest")
    assert "- c: outside the figures: degenerate" in text
    assert "- d: error: InfrastructureError: no GPU" in text
    assert "- e fp32: not run" in text


def test_a_best_baseline_of_some_is_said_to_be_that() -> None:
    text = overview([row("a"), row("b", baselines="eager 1x; compile not measured")])
    assert "1 of 2" in line(text, "of these with every baseline measured")
    assert "- b: best baseline of those that there was time for" in text


def test_overruns_are_counted_against_the_budget_of_whole_searches() -> None:
    text = overview([row("a", wall_s="74"), row("b", wall_s="80"), row("c", wall_s="500", resumed="yes")])
    assert "1 of 2; latest +20.0 s (b)" in line(text, "ended within budget + 15 s")


def test_dtypes_stand_side_by_side() -> None:
    text = overview([row("a", best=4.0), row("a", best=1.0, dtype="bf16")])
    assert line(text, "vs best baseline, highest").endswith("| 4.00x | 4.00x | 1.00x |")


def test_the_interval_over_tasks_is_that_of_the_logarithms() -> None:
    half = 4.30265 * math.log(2.0) / math.sqrt(3)  # the deviation of log 1, log 2 and log 4 is log 2
    assert (2.0 * math.exp(-half), 2.0 * math.exp(half)) == pytest.approx((0.35746, 11.19), rel=1e-4)
    assert geometric([1.0, 2.0, 4.0]) == "2.00x (0.36 to 11.19)"


@pytest.mark.parametrize(("values", "shown"), [([], "-"), ([1.239], "1.23x"), ([1.0, 4.0], "2.00x")])
def test_few_values_have_no_interval(values: list[float], shown: str) -> None:
    assert geometric(values) == shown


@pytest.mark.parametrize("values", [[], [1.239]])
def test_few_values_have_no_quartiles(values: list[float]) -> None:
    assert quartiles(values) == "-"


def test_figures_are_rounded_towards_one() -> None:
    assert with_interval(row("a", best=1.999), "speedup_best_baseline") == "1.99x (1.95 to 2.03)"
    assert with_interval(row("a", best=None), "speedup_best_baseline") == "-"


def test_devices_side_by_side() -> None:
    files = [[row("a"), row("b")], [row("a", best=3.0, device_name="Other GPU")]]
    text = comparison(files)
    assert "Test GPU: vs best baseline" in text and "Other GPU: vs eager" in text
    assert line(text, "b").count("| - |") == 1
    assert "3.00x" in line(text, "a")


def test_alone_it_asks_for_the_whole_suite_in_the_dtypes_of_the_rows() -> None:
    items = whole_suite([row("diagonal_matmul", dtype="bf16")])
    assert ("diagonal_matmul", "bf16") in items and {dtype for _, dtype in items} == {"bf16"}


def test_what_the_table_wrote_is_what_the_summary_reads(tmp_path: Path) -> None:
    table = Table(tmp_path / "suite.csv", COLUMNS, keys=2)
    table.append(row("a"))
    assert "2.00x" in summary(table.rows(), [("a", "fp32")])
