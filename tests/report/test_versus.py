"""Against what a figure is: never against a slower baseline than the fastest that is known."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, get_args

import pytest
from report_fakes import COMPILE, CPU, GPU, OURS, entry, record, task, timing

from cuda_l1 import scoring
from cuda_l1.config import Precision
from cuda_l1.report.cells import Ratio
from cuda_l1.report.entries import Entry, Method, entry_of
from cuda_l1.report.sections import Question, Section, sections
from cuda_l1.report.versus import Best, Standing, against, against_best, quotient, standing, standings
from cuda_l1.types import UNSOUND_FLAGS, Finding, Origin

TASK = task()


def section(entries: Sequence[Entry], protocol: str = "final", **question: Any) -> Section:
    return next(made for made in sections(entries, Question(**question)) if made.protocol == protocol)


def stand(made: Section, method: Method = OURS) -> Standing:
    found = standing(made, made.views[0], method)
    assert found is not None
    return found


def best(entries: Sequence[Entry], protocol: str = "final", **question: Any) -> Best | None:
    made = section(entries, protocol, **question)
    return against_best(made, stand(made))


GRID = itertools.product(
    (2.0, None), ("fp32", "tf32", "relaxed"), ("R2", "R0"), ("final", "kernelbench"),
    ((), ("precision",), ("clock-mismatch",)), ((), ("random",), *((flag,) for flag in sorted(UNSOUND_FLAGS))),
    ("techniques", "eager"), get_args(Precision),
)  # fmt: skip


def test_a_mean_of_a_report_is_over_what_may_stand_in_a_headline() -> None:
    seen = set()
    for speedup, got, rung, protocol, suspects, flags, who, precision in GRID:
        found = [Finding(check=name, severity="suspect", evidence="e") for name in suspects]
        one = entry(
            task(), speedup, who, place=GPU.model_copy(update={"rung": rung}), protocol=protocol,
            findings=found, flags=flags, precision_class=got,
            timings=[timing(2.0).model_copy(update={"clock": "device"})],
        )  # fmt: skip
        made = sections([one], Question(precision=precision))
        shown = any(s.counts for part in made for m in one.methods for s in standings(part, m, part.sound))
        due = scoring.in_headline(one.evaluation, precision, is_eager=who == "eager")
        assert shown is due, (speedup, got, rung, protocol, suspects, flags, who, precision)
        seen.add(due)
    assert seen == {True, False}


def test_the_verdicts_own_figure_stands() -> None:
    found = best([entry(TASK, 3.0, against={"compile": 1.5}, best_of=("eager", "compile"))])
    assert found is not None and (found.baseline, found.best_of) == ("compile", ("eager", "compile"))
    assert found.ratio.value == 1.5 and found.ratio.low is not None


def test_without_any_baseline_but_eager_eager_is_the_best() -> None:
    found = best([entry(TASK, 3.0)])
    assert found is not None and (found.baseline, found.ratio.value) == ("eager", 3.0)


def test_two_verdicts_of_one_protocol_are_divided_with_both_intervals() -> None:
    found = best([entry(TASK, 3.0), entry(TASK, 2.0, "compile")])
    assert found is not None and found.baseline == "compile"
    assert found.ratio.value == pytest.approx(1.5)
    assert found.ratio.low == pytest.approx(1.5 * math.exp(-math.hypot(0.02, 0.02)))


def test_a_faster_baseline_of_another_protocol_leaves_no_figure() -> None:
    """It says which baseline is the best; a slower one must not stand in for it, and protocols are not mixed."""
    assert best([entry(TASK, 3.0), entry(TASK, 2.0, "compile", protocol="screen")]) is None


def test_a_slower_baseline_of_another_protocol_leaves_eager_the_best() -> None:
    found = best([entry(TASK, 3.0), entry(TASK, 0.5, "compile", protocol="screen")])
    assert found is not None and (found.baseline, found.ratio.value) == ("eager", 3.0)


def test_a_faster_baseline_that_a_verdict_did_not_know_takes_its_figure() -> None:
    known = entry(TASK, 3.0, against={"compile": 1.5}, best_of=("eager", "compile"))
    found = best([known, entry(TASK, 2.5, "compile-max-autotune"), entry(TASK, 2.0, "compile")])
    assert found is not None and found.baseline == "compile-max-autotune"
    assert found.ratio.value == pytest.approx(3.0 / 2.5)


def test_a_baseline_that_does_not_count_is_no_denominator() -> None:
    suspect = Finding(check="weights-unmapped", severity="suspect", evidence="x")
    for excluded in (
        entry(TASK, 9.0, "compile", findings=[suspect]),
        entry(TASK, 9.0, "compile", precision_class="tf32"),
        entry(TASK, None, "compile"),
    ):
        found = best([entry(TASK, 3.0), excluded])
        assert found is not None and found.baseline == "eager"


def test_of_another_class_another_baseline_is_the_best() -> None:
    entries = [
        entry(TASK, 3.0),
        entry(TASK, 1.0, "eager", precision_class="tf32", task_class="tf32"),
        entry(TASK, 2.0, "compile", precision_class="tf32", task_class="tf32"),
        entry(TASK, 0.5, "eager-fp32", task_class="tf32"),
    ]
    relaxed, strict = best(entries), best(entries, precision="fp32")
    assert relaxed is not None and relaxed.baseline == "compile"
    assert strict is not None and (strict.baseline, strict.ratio.value) == ("eager-fp32", 6.0)


def test_each_column_of_a_release_is_a_method_of_its_own() -> None:
    columns = [Origin(proposer="release", techniques=(column,)) for column in ("custom", "cuda_graph")]
    made = section([entry(TASK, 2.0, columns[0]), entry(TASK, 3.0, columns[1]), entry(TASK, 4.0, "file")])
    assert [(m.kind, m.name) for m in made.systems] == [
        ("given", "file"), ("given", "release: cuda_graph"), ("given", "release: custom"),
    ]  # fmt: skip


def test_eager_against_itself_is_one() -> None:
    made = section([entry(TASK, 1.07, "eager")])
    assert against(made, stand(made, Method("baseline", "eager"))) == Ratio(1.0, 1.0, 1.0)


def test_a_suspicion_about_eagers_own_timing_takes_it_out_of_nothing() -> None:
    busy = Finding(check="busy-machine", severity="suspect", evidence="x")
    entries = [entry(TASK, 1.6), entry(TASK, 0.97, "eager", findings=[busy]), entry(TASK, 0.4, "compile")]
    made, found = section(entries), best(entries)
    assert found is not None and (found.baseline, found.ratio.value) == ("eager", 1.6)
    assert stand(made, Method("baseline", "eager")).counts and made.denominators == ("eager", "compile")
    assert against(made, stand(made)) == found.ratio


def test_the_fastest_candidate_that_counts_stands_for_a_method() -> None:
    suspect = Finding(check="caching", severity="suspect", evidence="x")
    made = section([entry(TASK, 2.0), entry(TASK, 3.0), entry(TASK, 9.0, findings=[suspect]), entry(TASK, None)])
    one = stand(made)
    figure = against(made, one)
    assert one.attempts == 4 and figure is not None and figure.value == 3.0


def test_what_is_slower_on_the_other_clock_gains_nothing() -> None:
    both = [timing(3.0), timing(0.5, clock="device")]
    made = section([entry(TASK, 3.0, timings=both)])
    figure = against(made, stand(made))
    assert figure is not None and (figure.value, figure.high) == (1.0, 1.0)


def test_what_failed_has_no_figure() -> None:
    made = section([entry(TASK, None)])
    one = stand(made)
    assert not one.counts and against(made, one) is None and against_best(made, one) is None


def test_of_several_verdicts_on_one_text_the_latest_stands() -> None:
    entries = [entry(TASK, 3.0, source="x"), entry(TASK, 2.0, source="x")]
    made = section(entries[::-1])
    figure = against(made, stand(made))
    assert stand(made).attempts == 1 and figure is not None and figure.value == 2.0


def test_of_several_texts_of_a_baseline_the_latest_is_meant() -> None:
    found = best([entry(TASK, 3.0), entry(TASK, 9.0, "compile"), entry(TASK, 2.0, "compile")])
    assert found is not None and (found.baseline, found.ratio.value) == ("compile", 1.5)


def test_a_text_that_two_wrote_is_both_ones() -> None:
    wrote = [Origin(proposer="baselines", techniques=("compile",)), Origin(proposer="llm", model="a model")]
    made = section([entry(TASK, 2.0, origin, source="x") for origin in wrote])
    assert stand(made, COMPILE).counts and stand(made, Method("system", "a model")).counts


def test_a_quotient_without_an_interval_has_none() -> None:
    assert quotient(Ratio(3.0), Ratio(2.0, 1.9, 2.1)) == Ratio(1.5)
    assert quotient(None, Ratio(2.0)) is None


def test_entries_hold_no_samples() -> None:
    full = record(TASK, 2.0, place=CPU)
    lean = entry_of(full, TASK)
    assert lean.record_id == full.id
    assert all(not timing.pairs for timing in lean.evaluation.timings)
