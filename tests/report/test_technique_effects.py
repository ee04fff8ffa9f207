"""What techniques do over many tasks, by hand."""

from __future__ import annotations

import csv
import io
import math
from typing import Any

import pytest
from report_fakes import LINKS, entry, record, task

from cuda_l1.report.build import build, only
from cuda_l1.report.cells import Ratio
from cuda_l1.report.entries import entry_of
from cuda_l1.report.formats import table_as_csv
from cuda_l1.report.site.overview import section_plots
from cuda_l1.report.technique_effects import PairEffect, TechniqueEffect, Tried, pair_effects, technique_effects
from cuda_l1.types import Origin


def tried(of: str, speedup: float | None, *names: str, half: float | None = None) -> Tried:
    """Log half-width `half`; None: without an interval."""
    bounds = () if half is None or speedup is None else (speedup * math.exp(-half), speedup * math.exp(half))
    return Tried(of, frozenset(names), None if speedup is None else Ratio(speedup, *bounds))


def ratio(value: float) -> Ratio:
    """One without an interval."""
    return Ratio(pytest.approx(value))


def effect(name: str, *found: Tried) -> TechniqueEffect:
    return next(one for one in technique_effects(found) if one.technique == name)


def pair(*found: Tried) -> PairEffect:
    (only_one,) = pair_effects(found)
    return only_one


def test_a_technique_that_fails_half_the_time_is_counted_so() -> None:
    found = effect("a", tried("1", 2.0, "a"), tried("1", None, "a"), tried("2", None, "a", "b"))
    assert (found.tried, found.tasks, found.right) == (3, 2, 1)
    assert found.speedup == pytest.approx(2.0) and found.gain == ratio(2.0) and found.compared == 1


def test_the_gain_is_the_median_over_tasks_not_over_candidates() -> None:
    many = [tried("1", 1.1, "a")] * 99
    found = effect("a", *many, tried("2", 4.0, "a"), tried("3", 2.0, "a"))
    assert found.gain == ratio(2.0)


def test_one_that_rides_on_another_looks_good_and_harms() -> None:
    found = effect("rider", *(t for of in "123" for t in (tried(of, 3.0, "good"), tried(of, 2.0, "good", "rider"))))
    assert found.verdict == "looks good, harms" and found.speedup == pytest.approx(2.0)
    assert (found.hurt, found.compared) == (3, 3) and found.gain == ratio(2 / 3)


def test_a_slowdown_that_its_interval_is_sure_of_harms() -> None:
    """4 %: more than the finals are uncertain, less than two screens of one candidate may differ by."""
    for half, verdict, hurt in ((0.01, "harms", 3), (0.05, "not decided", 0), (None, "no effect", 0)):
        found = effect("a", *(tried(of, 0.96, "a", half=half) for of in "123"))
        assert (found.verdict, found.hurt) == (verdict, hurt)
    assert effect("a", *(tried(of, 1.04, "a", half=0.01) for of in "123")).verdict == "adds"


def test_a_slowdown_that_its_interval_is_not_sure_of_does_not_harm() -> None:
    """10 %, from finals that are uncertain by 15 %."""
    found = effect("a", tried("1", 0.9, "a", half=0.15))
    assert (found.verdict, found.hurt) == ("not decided", 0)
    assert found.gain is not None and found.gain.high == pytest.approx(0.9 * math.exp(0.15))


def test_intervals_of_steps_add_in_quadrature_and_shrink_with_their_number() -> None:
    found = effect("a", *(tried("1", speedup, *names, half=0.02) for speedup, names in ((1.5, "a"), (2.0, "b"))))
    assert found.gain is not None and found.gain.low == pytest.approx(1.5 * math.exp(-0.02))
    three = [tried("1", 1.5, "a", half=0.02), tried("1", 2.0, "b", half=0.02), tried("1", 3.0, "a", "b", half=0.02)]
    gain = effect("a", *three).gain
    assert gain is not None and gain.low == pytest.approx(1.5 * math.exp(-0.02 * math.sqrt(3) / 2))
    assert effect("a", *three[:2], tried("1", 3.0, "a", "b")).gain == ratio(1.5)


def test_pairs_with_intervals_are_judged_by_them() -> None:
    for half, verdict in ((0.005, "overlap"), (0.02, "not decided")):
        found = pair(*(tried("1", s, *names, half=half) for s, names in ((2.0, "a"), (1.5, "b"), (2.9, "ab"))))
        assert found.verdict == verdict


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
    assert found.verdict == verdict and found.synergy == ratio(both / alone / other)


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
