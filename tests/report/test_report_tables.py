"""What is in the tables, and over which tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from report_fakes import CPU, GPU, entry, task, timing

from cuda_l1.report.build import Report, build
from cuda_l1.report.cells import Cell, Covered, Quoted, Ratio, Row, Share, Table, text
from cuda_l1.report.entries import Entry, Sampled
from cuda_l1.report.literature import published
from cuda_l1.report.sections import place_labels, sections
from cuda_l1.report.tables import evidence, headline, kernelbench, spread
from cuda_l1.report.tables.tasks import task_fields, tasks
from cuda_l1.types import Finding, Origin

A, B, C = task("1_a", 1), task("2_b", 1), task("10_c", 2)
SUSPECT = Finding(check="caching", severity="suspect", evidence="x")


def cells(table: Table, *beginning: Cell) -> dict[str, Cell]:
    """The one row that begins so, by column."""
    found = [row for row in table.rows if row.cells[: len(beginning)] == beginning]
    assert len(found) == 1, [row.cells for row in table.rows]
    return dict(zip(table.columns, found[0].cells, strict=True))


def value(cell: Cell) -> float:
    assert isinstance(cell, Ratio | Covered) and cell.value is not None
    return cell.value


def three() -> list[Entry]:
    """Two tasks of level 1 and one of level 2: 4x, failed, 1.005x; torch.compile gives 2x, 0.5x and nothing."""
    return [
        entry(A, 4.0), entry(B, None), entry(C, 1.005),
        entry(A, 2.0, "compile"), entry(B, 0.5, "compile"), entry(C, None, "compile"),
        *(entry(of, 1.0, "eager") for of in (A, B, C)),
    ]  # fmt: skip


def test_methods_by_level_count_a_failure_as_nothing() -> None:
    (section,) = sections(three())
    table = spread.methods(section)
    row = cells(table, "techniques", "all")
    assert value(row["mean"]) == pytest.approx((4.0 + 0 + 1.005) / 3)
    assert [value(row[name]) for name in ("max", "75 %", "50 %", "25 %")] == pytest.approx([4.0, 2.5025, 1.005, 0.5025])
    assert (row["success"], row["speed-up > 1.01x"], row["tasks"]) == (Share(2, 3), Share(1, 3), Share(3, 3))
    first = cells(table, "techniques", "kernelbench level 1")
    assert (value(first["mean"]), first["success"]) == (2.0, Share(1, 2))
    assert cells(table, "eager", "all")["speed-up > 1.01x"] == Share(0, 3)


def test_baselines_have_their_figures_by_class_also_where_they_do_not_count() -> None:
    """TF32 everywhere is another class on the products, and the task's own elsewhere; a suspected one has no figure."""
    entries = [
        *(entry(of, 1.0, "eager") for of in (A, B, C)),
        entry(A, 4.0, "tf32", precision_class="tf32"), entry(B, 1.0, "tf32"), entry(C, 1.0, "tf32", findings=[SUSPECT]),
        entry(A, 2.0, "compile"), entry(B, 8.0, "compile"), entry(C, None, "compile"),
    ]  # fmt: skip
    (section,) = sections(entries)
    assert value(cells(spread.methods(section), "tf32", "all")["mean"]) < 1.0
    table = spread.baselines(section)
    assert [row.cells[:2] for row in table.rows] == [
        ("eager", "fp32"), ("compile", "fp32"), ("tf32", "fp32"), ("tf32", "tf32"),
    ]  # fmt: skip
    inexact = cells(table, "tf32", "tf32")
    assert (value(inexact["geometric mean"]), inexact["tasks"], inexact["counts on"]) == (4.0, Share(1, 3), 0)
    compiled = cells(table, "compile", "fp32")
    assert value(compiled["geometric mean"]) == pytest.approx(4.0)
    assert (compiled["tasks"], compiled["counts on"]) == (Share(2, 3), 2)


def test_configurations_are_over_tasks_that_have_the_denominator() -> None:
    (section,) = sections(three())
    row = cells(spread.configurations(section), "Torch Compile (compile)", "techniques", "all")
    assert row["tasks"] == Share(2, 3), "torch.compile fails on the third"
    assert value(row["mean"]) == pytest.approx((4.0 / 2.0 + 0) / 2)
    assert row["speed-up > 1.01x"] == Share(1, 2)


def test_success_and_speedup_are_of_the_suites_tasks_as_in_their_tables() -> None:
    """Two of four tasks were searched; one is right and faster. torch.compile counts on three."""
    (section,) = sections([*three()[:2], *three()[3:], entry(task("3_d", 1), 1.0, "compile")])
    row = cells(spread.methods(section), "techniques", "all")
    assert (row["success"], row["speed-up > 1.01x"], row["tasks"]) == (Share(1, 4), Share(1, 4), Share(2, 4))
    row = cells(spread.configurations(section), "Torch Compile (compile)", "techniques", "all")
    assert (row["success"], row["speed-up > 1.01x"], row["tasks"]) == (Share(1, 4), Share(1, 3), Share(2, 4))
    assert cells(headline.precisions({"default": section}), "techniques", "default")["success"] == Share(1, 4)


def test_failures_alone_make_no_mean_against_a_baseline_that_finals_were_not_timed_against() -> None:
    """torch.compile, slower than eager, was screened; so a right final has no figure over it, and a wrong one none."""
    screens = [entry(of, 0.5, "compile", protocol="screen") for of in (A, B, C)]
    finals = [entry(A, 4.0), entry(B, None), entry(C, 2.0, against={"compile": 4.0})]
    (final, _) = sections([*screens, *finals])
    row = cells(spread.configurations(final), "Torch Compile (compile)", "techniques", "all")
    assert (value(row["mean"]), row["tasks"], row["success"]) == (4.0, Share(1, 3), Share(2, 3))
    assert row["speed-up > 1.01x"] == Share(1, 1)
    (final, _) = sections([*screens, *finals[:2]])
    assert [row.cells[0] for row in spread.configurations(final).rows if row.cells[2] == "all"] == ["Default (eager)"]
    faster = [entry(B, 1.5, "compile", protocol="screen")]
    (final, _) = sections([*faster, entry(B, None)])  # a right one would have been timed against the best
    assert value(cells(spread.configurations(final), "Torch Compile (compile)", "techniques", "all")["mean"]) == 0.0


def test_the_headline_is_floored_and_says_what_it_covers() -> None:
    (section,) = sections(three())
    row = cells(headline.headline(section), "techniques", "all")
    floors = [4.0 / 2.0, 1.0, 1.005]  # the failure counts as the baseline; on the third eager is the best
    assert value(row["geometric mean"]) == pytest.approx(math.prod(floors) ** (1 / 3))
    assert value(row["not floored"]) == pytest.approx(math.sqrt(2.0 * 1.005))
    assert value(row["mean"]) == pytest.approx(sum(floors) / 3)
    assert value(row["vs eager"]) == pytest.approx((4.0 * 1.005) ** (1 / 3))
    assert (row["beats it"], row["> 1.01x"], row["tasks"]) == (Share(1, 3), Share(1, 3), Share(3, 3))
    assert row["other clock"] is None


def test_the_headline_says_what_the_best_baseline_is_the_best_of() -> None:
    (section,) = sections(three())
    assert "of all sound tasks: eager 3/3, compile 2/3." in " ".join(headline.headline(section).notes)
    (alone,) = sections([entry(A, 4.0), entry(B, 2.0)])
    assert "No baseline but eager is known here" in " ".join(headline.headline(alone).notes)
    (chosen,) = sections([entry(A, 4.0, against={"compile": 1.5}, best_of=("eager", "compile"))])
    assert "eager 1/1, compile 1/1." in headline.best_of(chosen)


def test_a_task_without_a_comparable_best_baseline_is_in_no_mean() -> None:
    (final, _) = sections([entry(A, 4.0), entry(A, 2.0, "compile", protocol="screen"), entry(B, 3.0)])
    row = cells(headline.headline(final), "techniques", "all")
    assert row["tasks"] == Share(1, 2)
    assert value(row["geometric mean"]) == 3.0


def test_what_was_screened_and_given_up_counts_as_the_reference() -> None:
    """A mean over finals alone would be over the wins of a search."""
    screens = [entry(of, speedup, protocol="screen") for of, speedup in ((A, 4.1), (B, 0.9), (C, None))]
    final, screen = sections([*screens, entry(A, 4.0), entry(A, 1.0, "file"), entry(B, 2.0, "file", protocol="screen")])
    row = cells(headline.headline(final), "techniques", "all")
    assert value(row["geometric mean"]) == pytest.approx(4.0 ** (1 / 3)) and row["tasks"] == Share(3, 3)
    assert value(row["not floored"]) == 4.0
    spread_row = cells(spread.methods(final), "techniques", "all")
    assert value(spread_row["mean"]) == pytest.approx((4.0 + 1.0 + 0.0) / 3) and spread_row["success"] == Share(2, 3)
    assert cells(spread.methods(final), "file", "all")["tasks"] == Share(1, 3), (
        "who hands in a file has given up nothing"
    )
    given_up = next(row for row in task_fields(final) if row["task"] == "2_b" and row["method"] == "techniques")
    assert (given_up["confirmed"], given_up["speedup_eager"], given_up["record"]) == (False, None, None)
    assert cells(evidence.coverage(final), "techniques")["tasks with a verdict"] == Share(1, 3)
    assert cells(tasks(final), "kernelbench/2_b", "techniques")["outcome"] == "not confirmed"
    assert cells(headline.headline(screen), "techniques", "all")["tasks"] == Share(3, 3)


def test_the_other_clock_is_against_the_same_baseline() -> None:
    clocks = [
        timing(speedup, opponent, clock=clock, best_of=best_of)
        for clock, eager, best in (("device", 4.0, 2.0), ("call", 3.0, 1.5))
        for opponent, speedup, best_of in (("eager", eager, ()), ("compile", best, ("eager", "compile")))
    ]
    (section,) = sections([entry(A, 4.0, place=GPU, timings=clocks)])
    row = cells(headline.headline(section), "techniques", "all")
    assert (value(row["geometric mean"]), value(row["other clock"])) == (2.0, 1.5)


def test_screens_and_finals_and_places_stay_apart() -> None:
    entries = [entry(A, 2.0), entry(A, 8.0, protocol="screen"), entry(A, 4.0, place=GPU)]
    clocks = [timing(4.0, clock="device")]
    entries[2] = entry(A, 4.0, place=GPU, timings=clocks)
    report = build(entries)
    assert [made.title for made in report.sections] == [
        "Test CPU, final, call clock", "Test CPU, screen, call clock", "Test GPU, final, device clock",
    ]  # fmt: skip
    for made, speedup in zip(report.sections, (2.0, 8.0, 4.0), strict=True):
        assert value(cells(spread.methods(made), "techniques", "all")["mean"]) == speedup
    (place_by_place,) = report.blocks[0].tables
    assert place_by_place.columns[2:] == ("tasks", "Test CPU, call clock", "Test GPU, device clock")
    assert place_by_place.rows[0].cells[2:] == ("in common", Covered(2.0, Share(1, 1)), Covered(4.0, Share(1, 1)))


def test_places_stand_side_by_side_with_baselines_and_over_common_tasks() -> None:
    """Of the other place only baselines are known; torch.compile failed on the second task there."""
    elsewhere = CPU.model_copy(update={"device_name": "Other CPU"})
    there = [(A, 3.0, "compile"), (B, None, "compile"), (A, 1.0, "eager"), (B, 1.0, "eager")]
    report = build([*three(), *(entry(of, speedup, name, place=elsewhere) for of, speedup, name in there)])
    table = spread.devices(report.sections)
    assert table.columns[3:] == ("Other CPU, call clock", "Test CPU, call clock")
    default = "Default (eager)"
    everything, common = (cells(table, default, "compile", which) for which in ("all there", "in common"))
    assert everything[table.columns[3]] == common[table.columns[3]] == Covered(1.5, Share(2, 2))
    assert everything[table.columns[4]] == Covered(pytest.approx(2.5 / 3), Share(3, 3))
    assert common[table.columns[4]] == Covered(1.25, Share(2, 3))
    assert cells(table, default, "techniques", "all there")[table.columns[3]] is None, "nobody searched there"
    assert not [row for row in table.rows if row.cells[:3] == (default, "techniques", "in common")]


def test_places_stand_side_by_side_against_the_best_baseline() -> None:
    """The headline's mean of each place: 4x over 2x, failed, 1.005x; and 3x on the first task alone."""
    elsewhere = CPU.model_copy(update={"device_name": "Other CPU"})
    table = spread.devices(build([*three(), entry(A, 3.0, place=elsewhere)]).sections)
    best = cells(table, "Best baseline", "techniques", "all there")
    assert best[table.columns[4]] == Covered(pytest.approx((2.0 + 1.0 + 1.005) / 3), Share(3, 3))
    common = cells(table, "Best baseline", "techniques", "in common")
    assert [common[name] for name in table.columns[3:]] == [Covered(3.0, Share(1, 1)), Covered(2.0, Share(1, 3))]


def test_places_with_no_task_in_common_say_so() -> None:
    entries = [entry(A, 2.0), entry(B, 3.0, place=CPU.model_copy(update={"device_name": "Other CPU"}))]
    table = spread.devices(build(entries).sections)
    assert [row.cells[2:] for row in table.rows if row.cells[0] == "Default (eager)"] == [
        ("all there", Covered(3.0, Share(1, 1)), Covered(2.0, Share(1, 1))),
        ("in common", None, None),
    ]


def test_places_of_one_device_are_told_apart_by_what_differs() -> None:
    newer = CPU.model_copy(update={"torch": "2.14.0"})
    labels = place_labels([CPU, newer, GPU])
    assert labels[newer.key] == "Test CPU (torch 2.14.0)" and labels[GPU.key] == "Test GPU"
    assert len(sections([entry(A, 2.0), entry(A, 2.0, place=newer)])) == 2


def test_degenerate_tasks_are_listed_and_stand_in_no_figure() -> None:
    (section,) = sections([entry(A, 2.0), entry(B, 500.0, flags=["degenerate", "random"])])
    row = cells(spread.methods(section), "techniques", "all")
    assert (value(row["max"]), row["tasks"]) == (2.0, Share(1, 1))
    listed = cells(evidence.apart(section), B.id)
    assert listed["why"] == "degenerate" and value(listed["vs eager"]) == 500.0


def test_what_does_not_count_is_no_success() -> None:
    (section,) = sections([entry(A, 9.0, findings=[SUSPECT]), entry(B, 9.0, precision_class="relaxed")])
    row = cells(spread.methods(section), "techniques", "all")
    assert (row["success"], value(row["max"])) == (Share(0, 2), 0.0)
    covered = cells(evidence.coverage(section), "techniques")
    assert (covered["candidates accepted"], covered["suspected"]) == (Share(2, 2), 1)
    unconfined = CPU.model_copy(update={"rung": "R0"})
    (section,) = sections([entry(A, 9.0, place=unconfined)])
    assert cells(spread.methods(section), "techniques", "all")["success"] == Share(0, 1)


def test_fast_p_of_systems_stands_against_both_opponents() -> None:
    (section,) = sections(three())
    table = kernelbench.fast(section)
    eager = cells(table, "techniques", "eager")
    assert [eager[f"p = {p}"] for p in ("0", "1", "1.5", "2")] == pytest.approx([2 / 3, 2 / 3, 1 / 3, 1 / 3])
    best = cells(table, "techniques", "best baseline")
    assert [best[f"p = {p}"] for p in ("0", "1", "1.5", "2")] == pytest.approx([2 / 3, 2 / 3, 1 / 3, 0.0])


def test_what_was_given_up_is_as_right_against_the_best_baseline_as_against_eager() -> None:
    screens = [entry(of, speedup, protocol="screen") for of, speedup in ((A, 4.1), (B, 0.9), (C, None))]
    (final, _) = sections([*screens, entry(A, 4.0), entry(A, 2.0, "compile")])
    table = kernelbench.fast(final)
    for opponent in ("eager", "best baseline"):
        row = cells(table, "techniques", opponent)
        assert [row[f"p = {p}"] for p in ("0", "1")] == pytest.approx([2 / 3, 1 / 3]), opponent


MODEL = Origin(proposer="llm", model="some-model")


def model(of: int, speedups: Sequence[float | None]) -> list[Entry]:
    return [entry((A, B)[of], speedup, MODEL) for speedup in speedups]


def test_pass_at_k_is_over_the_same_tasks_for_every_k() -> None:
    steps = [entry(A, speedup) for speedup in (1.1, 1.2, 1.3)]
    (section,) = sections([*model(0, [None, None, 1.2, 2.5]), entry(B, 1.0, "eager"), *steps])
    table = kernelbench.samples(section)
    assert {row.cells[0] for row in table.rows} == {"some-model"}, "the steps of our search are no samples"
    one, two = cells(table, "some-model", 1), cells(table, "some-model", 2)
    assert one["pass@k"] == pytest.approx(0.5) and one["tasks"] == Share(1, 2), "it tried one of two tasks"
    assert two["pass@k"] == pytest.approx(5 / 6) and two["tasks"] == Share(1, 2)  # of six pairs one holds no right one
    assert two["fast_1.5@k"] == pytest.approx(0.5)
    assert not [row for row in table.rows if row.cells[1] not in (1, 2)], "nobody has five samples"


@pytest.mark.parametrize(("twice", "shown"), [(10, (1, 2)), (9, (1, 2)), (8, (1,))])
def test_pass_at_k_is_shown_where_nine_in_ten_tasks_have_k_samples(twice: int, shown: tuple[int, ...]) -> None:
    """On the first task it is right once in two; each other sample is wrong."""
    tried = [task(str(number), 1) for number in range(10)]
    first = [entry(tried[0], 1.2, MODEL), *(entry(of, None, MODEL) for of in tried[1:])]
    (section,) = sections([*first, *(entry(of, None, MODEL) for of in tried[:twice])])
    rows = kernelbench.samples(section).rows
    over = twice if 2 in shown else 10
    assert tuple(row.cells[1] for row in rows) == shown
    assert {row.cells[-1] for row in rows} == {Share(over, 10)}
    assert rows[0].cells[2] == pytest.approx(0.5 / over)


def test_finals_of_a_few_tasks_that_a_method_tried_are_no_pass_at_k() -> None:
    screened = [entry(of, 1.2, MODEL, protocol="screen") for of in (A, B, C)]
    final, _ = sections([*screened, *model(0, [1.2, 1.3])])
    assert final.protocol == "final" and not kernelbench.samples(final).rows


def test_findings_and_classes_are_counted_by_candidate_and_task() -> None:
    note = Finding(check="stream", severity="note", evidence="x")
    (section,) = sections([
        entry(A, 2.0, findings=[SUSPECT, note, note]), entry(A, 3.0, findings=[note]),
        entry(B, 2.0, precision_class="tf32"),
    ])  # fmt: skip
    table = evidence.findings(section)
    assert [row.cells[:4] for row in table.rows] == [("caching", "suspect", 1, 1), ("stream", "note", 2, 1)]
    assert list(cells(evidence.classes(section), "techniques").items())[1:] == [("fp32", 2), ("tf32", 1)]


def test_tasks_are_in_their_natural_order() -> None:
    (section,) = sections(three())
    assert [row.cells[0] for row in tasks(section).rows] == [
        "kernelbench/1_a", "kernelbench/2_b", "kernelbench/10_c",
    ]  # fmt: skip


def test_a_task_without_a_candidate_stands_with_its_baselines() -> None:
    (section,) = sections([entry(A, 2.0), entry(A, 1.0, "eager"), entry(B, 1.0, "eager")])
    assert [row.cells[:2] for row in tasks(section).rows] == [
        ("kernelbench/1_a", "techniques"), ("kernelbench/2_b", "eager"),
    ]  # fmt: skip


def test_rows_for_programs_have_one_form() -> None:
    (section,) = sections(three())
    rows = task_fields(section)
    assert len(rows) == 9 and len({tuple(row) for row in rows}) == 1
    (ours,) = (row for row in rows if row["task"] == "1_a" and row["method"] == "techniques")
    assert ours["speedup_best_baseline"] == pytest.approx(2.0) and ours["best_baseline"] == "compile"
    assert ours["speedup_eager_low"] < 4.0 < ours["speedup_eager_high"]
    (failed,) = (row for row in rows if row["task"] == "2_b" and row["method"] == "techniques")
    assert failed["speedup_best_baseline"] is None and failed["counts"] is False


def test_published_figures_are_marked_as_not_ours() -> None:
    tables = published()
    assert all(not row.measured for table in tables for row in table.rows)
    assert all("not measured by us" in table.notes[0] for table in tables)
    (row,) = (row for row in tables[0].rows if row.cells[0] == "vanilla: DeepSeek-R1")
    assert [text(cell) for cell in row.cells[1:]] == ["0.88x", "14.4x", "1.00x", "0.75x", "0x", "179/250", "18/250"]
    assert cells(tables[2], "Torch Compile")["H20"] == Quoted("2.89")
    assert cells(tables[1], "CUDA Graph", "all")["speed-up > 1.01x"] == Share(147, 229)
    assert all(len(row.cells) == len(table.columns) for table in tables for row in table.rows)


def test_every_table_is_as_wide_as_its_head() -> None:
    report = build(three(), literature=True)
    assert {t.name for b in report.blocks for t in b.tables} >= {"headline", "methods", "configurations", "precisions"}
    for table in (table for block in report.blocks for table in block.tables):
        assert {len(row.cells) for row in table.rows} == {len(table.columns)}, table.name


def test_text_from_a_record_is_printable() -> None:
    assert text("a\x1b[31mb\n") == "a\N{REPLACEMENT CHARACTER}[31mb\N{REPLACEMENT CHARACTER}"
    assert [text(cell) for cell in (None, 3, 0.5, Share(1, 2), Ratio(1.999), Covered(None, Share(0, 1)))] == [
        "-", "3", "0.500", "1/2", "1.99x", "- (0/1)",
    ]  # fmt: skip
    assert Row(("x",)).measured


def rows_of_samples(report: Report) -> dict[int, tuple[Cell, ...]]:
    (table,) = (table for block in report.blocks for table in block.tables if table.name == "pass_at_k")
    return {int(str(row.cells[1])): row.cells[2:] for row in table.rows}


def test_a_models_replies_are_its_samples() -> None:
    """Four replies: twice one right text, one without a candidate, one wrong. A repair's candidate is none."""
    model, of, other = Origin(proposer="llm", model="m"), task("1_a", 1), task("2_b", 1)
    right, wrong, repaired = (entry(of, speedup, model, protocol="screen") for speedup in (2.0, None, 3.0))
    baseline = entry(other, 1.0, "eager", protocol="screen")
    drawn = [Sampled("run", "m", of.sha, name) for name in (right.candidate_id, None, wrong.candidate_id)]
    drawn += [Sampled("run", "m", of.sha, right.candidate_id), Sampled("elsewhere", "m", of.sha, None)]
    drawn += [Sampled("run", "m", other.sha, None)] * 4  # nothing it said of this task was a candidate
    found = rows_of_samples(build([right, wrong, repaired, baseline], sampled=drawn))
    assert found[1][0] == pytest.approx((2 / 4 + 0) / 2) and found[1][-1] == Share(2, 2)
    assert found[2][0] == pytest.approx((1 - 1 / 6) / 2)
    without = rows_of_samples(build([right, wrong, repaired, baseline]))
    assert without[1][0] == pytest.approx(2 / 3), "by its different candidates"


def test_replies_of_another_place_are_no_samples_of_this_one() -> None:
    """A merged archive may hold a run twice: equal settings give it one name on every GPU."""
    model, of = Origin(proposer="llm", model="m"), task("1_a", 1)
    here, there = (entry(of, 2.0, model, source="x = 1", protocol="screen", place=place) for place in (CPU, GPU))
    replies = {CPU.key: (here.candidate_id, None), GPU.key: (there.candidate_id, None, None, None)}
    drawn = [Sampled("run", "m", of.sha, name, key) for key, names in replies.items() for name in names]
    tables = [t for block in build([here, there], sampled=drawn).blocks for t in block.tables if t.name == "pass_at_k"]
    assert [table.rows[0].cells[2] for table in tables] == pytest.approx([1 / 2, 1 / 4])


def test_finals_that_a_search_chose_are_no_samples() -> None:
    """Of three screened candidates the two best went to a final: both are right, which says nothing of chance."""
    of, sources = task("1_a", 1), ("x = 1", "x = 2", "x = 3")
    screens = [entry(of, s, MODEL, source=x, protocol="screen") for s, x in zip((2.0, 3.0, None), sources, strict=True)]
    finals = [entry(of, s, MODEL, source=x) for s, x in zip((2.0, 3.0), sources, strict=False)]
    report = build([*screens, *finals])
    tables = {block.title: [t.name for t in block.tables] for block in report.blocks}
    assert "pass_at_k" not in tables["Test CPU, final, call clock"]
    assert rows_of_samples(build(screens))[1][0] == pytest.approx(2 / 3)
    assert rows_of_samples(build(finals))[1][0] == 1.0, "where nothing was left out"
