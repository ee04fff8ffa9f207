"""Figures as far apart as numbers are: an archive of somebody else's may hold any."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from report_fakes import entry_of, record, task, timing

from cuda_l1 import ratios, scoring
from cuda_l1.report import formats, readme
from cuda_l1.report.ablation import effects, interactions, measured
from cuda_l1.report.build import build
from cuda_l1.report.cells import Ratio, times, with_bounds
from cuda_l1.report.reasons import Facts, reasons
from cuda_l1.report.site.write import write_site
from cuda_l1.report.tables.roofline import rooflines
from cuda_l1.report.terminal import rendered
from cuda_l1.report.versus import quotient
from cuda_l1.types import Origin, Record, Timing, Work

TINY, HUGE = 5e-324, 1.7e308
NO_FIGURE = re.compile(r"\b(nan|inf|NaN|Infinity)\b|\d{30}")
WORK = Work(moved_bytes=10**6, flops=10**400, bytes_per_us=1e3, flops_per_us={"fp32": 1e3, "tf32": math.inf})


def far(low: float, value: float, high: float, opponent: str = "eager", took_us: float = HUGE) -> Timing:
    made = timing(1.0, opponent, None, best_of=("eager", "compile") if opponent != "eager" else ())
    pair = made.pairs[0].model_copy(
        update={"candidate_us": (took_us, TINY), "opponent_us": (TINY, HUGE), "log_ratio": 1e308}
    )
    values = {"speedup": value, "speedup_low": low, "speedup_high": high, "candidate_us": took_us, "pairs": (pair,) * 2}
    return Timing.model_validate(made.model_dump() | values)


def records() -> list[Record]:
    fusion, both = (Origin(proposer="techniques", techniques=names) for names in (("fusion",), ("fusion", "tf32")))
    made = []
    for number, value in enumerate((TINY, 1.0, HUGE)):
        of = task(f"{number}_t", 1)
        own = far(TINY, value, HUGE)
        made += [
            record(of, 1.0, "eager", timings=[far(1.0, 1.0, 1.0, took_us=TINY)]),
            record(of, 1.0, "compile", timings=[far(TINY, HUGE, HUGE)]),
            record(of, 1.0, fusion, timings=[own, far(TINY, value, HUGE, "compile")]),
            record(of, 1.0, both, timings=[far(TINY, TINY, TINY, took_us=0.0)]),
            record(of, 1.0, Origin(proposer="llm", model="m"), timings=[own], protocol="screen"),
        ]
    evaluation = made[0].evaluation
    made[0] = made[0].model_copy(update={"evaluation": evaluation.model_copy(update={"work": WORK})})
    return made


def test_every_format_of_a_report_tells_them(tmp_path: Path) -> None:
    kept = {one.id: one for one in records()}
    tasks = {one.candidate.task_sha: task(f"{number}_t", 1) for number in range(3) for one in kept.values()
             if one.candidate.task_id == task(f"{number}_t", 1).id}  # fmt: skip
    report = build([entry_of(one, tasks[one.candidate.task_sha]) for one in kept.values()])
    write_site(report, kept.get, tmp_path / "site")
    pages = [page.read_text() for page in sorted((tmp_path / "site").rglob("*.html"))]
    shown = "\n".join(line for block in report.blocks for t in block.tables for line in map(str, rendered(t)))
    written = [formats.as_markdown(report), formats.as_csv(report), readme.figures(report, kept.get) or "", shown]
    written.append("\n".join(json.dumps(one) for one in formats.as_objects(report)))
    for text in (*pages, *written):
        assert not NO_FIGURE.search(text), NO_FIGURE.findall(text)
    assert "e+300x" in written[0] and "e-300x" in written[0]


def test_bytes_and_operations_that_cannot_be_divided_are_left_out_with_a_remark() -> None:
    of, odd = task("1_a", 1), task("2_b", 1)
    verdicts = [(record(one, 2.0), one, flops) for one, flops in ((of, 10**6), (odd, 10**400))]
    entries = []
    for made, one, flops in verdicts:
        work = WORK.model_copy(update={"flops": flops})
        evaluation = made.evaluation.model_copy(update={"work": work})
        entries.append(entry_of(made.model_copy(update={"evaluation": evaluation}), one))
    table = rooflines(build(entries).sections[0])
    assert [row.cells[0] for row in table.rows] == ["kernelbench/1_a"]
    assert any("Left out: 1 whose" in note for note in table.notes) and "inf" not in " ".join(table.notes)


def test_ablations_of_them_have_figures() -> None:
    known = {frozenset(names): measured([far(TINY, value, HUGE)]) for names, value in
             (("a", TINY), ("b", HUGE), ("ab", TINY))}  # fmt: skip
    known[frozenset("b")] = measured([timing(1.0, half=None), timing(1.0, half=None, pairs=far(1, 1, 1).pairs)])
    found = [value for effect in effects("ab", known) for value in (effect.alone, effect.in_all, effect.mean)]
    found += [one.ratio for one in interactions("ab", known)]
    assert all(value is not None and 0 < value < math.inf for value in found)


def test_a_replay_says_why_two_of_them_differ() -> None:
    theirs, ours = (record(task(), 1.0, timings=[far(TINY, value, HUGE)]).evaluation for value in (TINY, HUGE))
    told = {why.why: why.evidence for why in reasons(Facts(HUGE, theirs, ours, "", ""))}
    assert "measured otherwise" in told and "another figure here" in told
    assert not any(NO_FIGURE.search(text) for text in told.values())


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.004, "4.00e-3x"),
        (0.01, "0.01x"),
        (1.999, "1.99x"),
        (1.2399e9, "1.23e+9x"),
        (1e-300, "1.00e-300x"),
        (0, "0.00x"),
    ],
)
def test_what_hundredths_cannot_tell_has_its_power_of_ten(value: float, shown: str) -> None:
    assert times(value) == shown
    assert with_bounds(value, value / 2, value * 2 + 1).startswith(f"{shown} (")


def test_quotients_and_intervals_stay_within_what_a_number_holds() -> None:
    assert ratios.from_log(800.0) == ratios.FARTHEST and ratios.from_log(-1e308) == 1 / ratios.FARTHEST
    assert scoring.interval([-1e308, 1e308])[1:] == (1 / ratios.FARTHEST, ratios.FARTHEST)
    over = quotient(Ratio(1e300, 1e-300, 1e300), Ratio(1e-300, 1e-300, 1e300))
    assert over is not None and over.value == over.high == 1e300 and over.low == pytest.approx(math.exp(-285.34), rel=1)
