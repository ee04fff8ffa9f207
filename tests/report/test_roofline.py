"""How near times are to what a device allows for, by hand."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import pytest
from report_fakes import CPU, GPU, LINKS, entry, record, task

from cuda_l1.report.build import build
from cuda_l1.report.entries import Entry, entry_of
from cuda_l1.report.formats import as_csv
from cuda_l1.report.roofline import Ceilings, ceilings_of, roofline
from cuda_l1.report.site import plots
from cuda_l1.report.site.overview import section_plots
from cuda_l1.types import Environment, Task, Work

CEILINGS = Ceilings(bytes_per_us=100.0, flops_per_us={"fp32": 1000.0, "tf32": 4000.0})


def work(moved: int = 1000, flops: int = 5000, bytes_per_us: float = 100.0, fp32: float = 1000.0) -> Work:
    return Work(moved_bytes=moved, flops=flops, bytes_per_us=bytes_per_us, flops_per_us={"fp32": fp32})


def counted(
    of: Task, speedup: float | None, own: Work | None, place: Environment = CPU, origin: str = "techniques", **more: Any
) -> Entry:
    made = record(of, speedup, origin, place=place, **more)
    return entry_of(made.model_copy(update={"evaluation": made.evaluation.model_copy(update={"work": own})}), of)


def test_memory_bounds_a_task_of_few_operations_and_arithmetic_one_of_many() -> None:
    few, many = (roofline(work(flops=flops), CEILINGS, 40.0, "fp32") for flops in (5000, 20000))
    assert few and (few.least_us, few.bound, few.intensity, few.fraction) == (10.0, "memory", 5.0, 0.25)
    assert many and (many.least_us, many.bound, many.fraction) == (20.0, "arithmetic", 0.5)


def test_a_class_has_its_own_ceiling_and_an_unknown_one_the_highest() -> None:
    asked = work(moved=1, flops=40000)
    found = [roofline(asked, CEILINGS, 40.0, name) for name in ("fp32", "tf32", "relaxed", None)]
    assert [one.least_us for one in found if one] == [40.0, 10.0, 10.0, 10.0]


def test_a_task_that_moves_nothing_lies_nowhere() -> None:
    assert roofline(work(moved=0), CEILINGS, 40.0, "fp32") is None


def test_the_ceilings_of_a_place_are_the_most_that_was_measured_there() -> None:
    entries = [counted(task(), 2.0, own) for own in (work(bytes_per_us=50.0, fp32=900.0), work(fp32=700.0), None)]
    assert ceilings_of(entries) == Ceilings(100.0, {"fp32": 900.0})
    assert ceilings_of(entries[2:]) is None


def test_eager_is_never_above_the_ceilings() -> None:
    """Eager takes 20 us, where a loaded machine measured ceilings that give it 100 and 50."""
    loaded = counted(task("1_a"), 2.0, work(moved=2000, flops=5000, bytes_per_us=20.0, fp32=100.0))
    quick = counted(task("2_b"), 4.0, work(moved=100, flops=100))
    found = ceilings_of([loaded])
    assert found == Ceilings(100.0, {"fp32": 250.0}, ("fp32", "memory"))
    assert found is not None and found != ceilings_of([loaded, quick]), "what any record measured counts"
    report = build([loaded])
    (table,) = (table for block in report.blocks for table in block.tables if table.name == "roofline")
    assert table.rows[0].cells[-2:] == (2.0, 1.0) and "fp32 0.00025 Tflop/s (by eager)" in table.notes[0]
    own = counted(task("1_a"), 0.5, work(fp32=100.0), origin="eager")  # 10 us, beside itself in 5
    assert ceilings_of([own]) == Ceilings(200.0, {"fp32": 1000.0}, ("fp32", "memory"))


def test_a_class_without_a_product_has_the_highest_ceiling_until_eager_exceeds_it() -> None:
    half = counted(task(), 2.0, work(flops=50_000), task_class="bf16")
    found = ceilings_of([half])
    assert found is not None and found.flops_per_us == {"fp32": 1000.0, "bf16": 2500.0} and found.by_eager == ("bf16",)


def test_a_report_has_fractions_of_candidate_and_eager() -> None:
    """10 us at 2x: eager takes 20; the bytes take 10, so the candidate is at the roof."""
    one, old, bad = task("1_a", 1), task("2_b", 1), task("3_c", 1)
    report = build([counted(one, 2.0, work()), entry(old, 2.0), counted(bad, None, work())])
    rows = {row["task"]: row for row in csv.DictReader(io.StringIO(as_csv(report)))}
    assert float(rows["1_a"]["roofline_fraction"]) == 1.0 and float(rows["1_a"]["roofline_fraction_eager"]) == 0.5
    assert (rows["1_a"]["roofline_bound"], rows["1_a"]["work_bytes"]) == ("memory", "1000")
    assert rows["2_b"]["roofline_fraction"] == rows["3_c"]["roofline_fraction"] == ""
    (table,) = (table for block in report.blocks for table in block.tables if table.name == "roofline")
    assert [row.cells[0] for row in table.rows] == ["kernelbench/1_a"] and table.rows[0].cells[-2:] == (1.0, 0.5)
    assert any("caches" in note for note in table.notes)


def test_places_have_ceilings_of_their_own() -> None:
    report = build([counted(task(), 2.0, work()), counted(task(), 2.0, work(bytes_per_us=1000.0), GPU)])
    assert sorted(section.ceilings.bytes_per_us for section in report.sections if section.ceilings) == [100.0, 1000.0]


def test_the_plot_shows_roofs_and_every_task() -> None:
    report = build([counted(task("1_a"), 2.0, work()), counted(task("<2>"), 3.0, work(flops=90000))])
    shown = "".join(section_plots(report.sections[0], LINKS))
    assert 'class="roof"' in shown and shown.count('class="dot') == 4 and "&lt;2&gt;, eager: " in shown
    assert "nan" not in shown and "inf" not in shown
    assert plots.under_roofs({}, 1.0, {"fp32": 1.0}, "t") == ""


@pytest.mark.parametrize("flops", [1, 10**15])
def test_the_plot_stands_a_single_task_far_from_the_edge(flops: int) -> None:
    report = build([counted(task("1_a"), 2.0, work(flops=flops))])
    shown = "".join(section_plots(report.sections[0], LINKS))
    for bends in re.findall(r'class="roof" points="([^"]*)"', shown):
        (left, low), (edge, high), (right, same) = (map(float, bend.split(",")) for bend in bends.split())
        assert left < edge < right and low > high == same, "it rises to its edge, which is in sight"
    assert 'class="roof"' in shown
