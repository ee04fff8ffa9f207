"""What techniques do over many tasks, by hand."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from report_fakes import LINKS, entry, record, task

from cuda_l1.report.build import build, only
from cuda_l1.report.entries import entry_of
from cuda_l1.report.formats import table_as_csv
from cuda_l1.report.site.overview import section_plots
from cuda_l1.report.technique_effects import PairEffect, TechniqueEffect, Tried, pair_effects, technique_effects
from cuda_l1.types import Origin


def tried(of: str, speedup: float | None, *names: str) -> Tried:
    return Tried(of, frozenset(names), speedup)


def effect(name: str, *found: Tried) -> TechniqueEffect:
    return next(one for one in technique_effects(found) if one.technique == name)


def pair(*found: Tried) -> PairEffect:
    (only_one,) = pair_effects(found)
    return only_one


def test_a_technique_that_fails_half_the_time_is_counted_so() -> None:
    found = effect("a", tried("1", 2.0, "a"), tried("1", None, "a"), tried("2", None, "a", "b"))
    assert (found.tried, found.tasks, found.right) == (3, 2, 1)
    assert found.speedup == pytest.approx(2.0) and found.gain == pytest.approx(2.0) and found.compared == 1


def test_the_gain_is_the_median_over_tasks_not_over_candidates() -> None:
    many = [tried("1", 1.1, "a")] * 99
    found = effect("a", *many, tried("2", 4.0, "a"), tried("3", 2.0, "a"))
    assert found.gain == pytest.approx(2.0)


def test_one_that_rides_on_another_looks_good_and_harms() -> None:
    found = effect("rider", *(t for of in "123" for t in (tried(of, 3.0, "good"), tried(of, 2.0, "good", "rider"))))
    assert found.verdict == "looks good, harms" and found.speedup == pytest.approx(2.0)
    assert (found.hurt, found.compared) == (3, 3) and found.gain == pytest.approx(2 / 3)


def test_without_a_partner_nothing_is_compared() -> None:
    assert effect("a", tried("1", 2.0, "a", "b")).verdict == "not compared"
    assert pair_effects([tried("1", 2.0, "a", "b"), tried("1", 1.5, "a")]) == []


def test_candidates_of_different_tasks_are_no_partners() -> None:
    assert effect("b", tried("1", 2.0, "a", "b"), tried("2", 1.5, "a")).gain is None


@pytest.mark.parametrize(
    ("alone", "other", "both", "verdict"),
    [
        (2.0, 1.5, 3.0, "multiply"),
        (2.0, 1.5, 2.2, "overlap"),
        (2.0, 1.5, 1.2, "harm each other"),
        (2.0, 1.5, 6.0, "help each other"),
        (1.5, 1.0, 3.0, "a opens b"),
        (0.9, 1.3, 3.0, "b opens a"),
        (1.0, 1.0, 3.0, "only together"),
    ],
)
def test_pairs(alone: float, other: float, both: float, verdict: str) -> None:
    found = pair(tried("1", alone, "a"), tried("1", other, "b"), tried("1", both, "a", "b"))
    assert found.verdict == verdict and found.synergy == pytest.approx(both / alone / other)


def ours(of: Any, speedup: float | None, *names: str, **more: Any) -> Any:
    return entry(of, speedup, Origin(proposer="techniques", techniques=names), **more)


def test_a_section_has_ours_by_name_and_others_by_rule() -> None:
    toy, unsound = task("1_a", 1), task("2_b", 1)
    model = Origin(proposer="llm", model="some-model", techniques=("labelled",))
    text = "import torch\nclass ModelNew: pass\nf = torch.compile(ModelNew())\n"
    report = build(
        [
            *(ours(toy, speedup, *names) for speedup, names in ((2.0, "a"), (None, "b"), (3.0, "ab"))),
            ours(unsound, 9.0, "c", flags=("degenerate",)),
            entry_of(record(toy, 1.5, model, source=text), toy),
            entry(toy, 1.2, "compile"),
        ]
    )
    rows = list(csv.DictReader(io.StringIO(table_as_csv(report, "techniques"))))
    found = {(row["technique"], row["candidates"].split(",")[0]): row for row in rows}
    assert found.keys() == {
        ("a", "ours"),
        ("b", "ours"),
        ("torch-compile", "others' text"),
        ("labelled", "others' text"),
    }
    assert (found["a", "ours"]["accepted"], found["a", "ours"]["accepted_total"]) == ("2", "2")
    assert float(found["b", "ours"]["gain"]) == pytest.approx(1.5) and found["b", "ours"]["accepted"] == "1"
    assert {block.title for block in only(report, "techniques").blocks} == {report.sections[0].title}
    shown = "".join(section_plots(report.sections[0], LINKS))
    assert "how often each technique was tried" in shown and "labelled" in shown and ">c<" not in shown


def test_releases_columns_are_no_techniques() -> None:
    toy = task("1_a", 1)
    found = entry(toy, 2.0, Origin(proposer="release", techniques=("cuda_graph",)), source="class ModelNew: pass")
    assert (found.techniques, found.tagged) == ((), True)
