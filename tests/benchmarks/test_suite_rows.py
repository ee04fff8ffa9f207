"""A search becomes a row that says what was claimed, against what, and where its seconds went."""

from __future__ import annotations

import pytest
from benchmark_fakes import EAGER, GPU, candidate, eager_record, final, record, result, timing

from cuda_l1.types import Record
from suite_rows import COLUMNS, Search, result_columns, stage_seconds


def search(*paid: Record, records: tuple[Record, ...] | None = None) -> Search:
    return Search(GPU, records or paid, paid, asked_s=12.0, resumed=False, detail="")


def test_a_confirmed_winner() -> None:
    won = final("fusion", 2.0, 1.3)
    row = result_columns(result(won), search(eager_record(), won))
    assert set(row) <= set(COLUMNS)
    assert (row["outcome"], row["technique"], row["record"]) == ("beats-best-baseline", "fusion", won.id)
    assert (row["speedup_eager"], row["speedup_best_baseline"]) == (2.0, 1.3)
    assert row["speedup_best_baseline_low"] == pytest.approx(1.3 / 1.02)
    assert (row["best_baseline"], row["best_of"]) == ("compile", "eager compile")
    assert (row["clock"], row["other_clock"]) == ("device", "call")
    assert row["other_speedup_best_baseline"] == pytest.approx(1.17)
    assert (row["precision_class"], row["task_class"], row["sound"]) == ("fp32", "tf32", True)
    assert row["findings"] == "reused-output(note)"
    assert row["baselines"] == "eager 1.00x; compile 1.50x"
    assert (row["device_name"], row["driver"]) == ("Test GPU", "580.1")


def test_what_did_not_hold_up_shows_its_figures_under_no_improvement() -> None:
    lost = final("fusion", 1.0, 0.7)
    row = result_columns(result(None, unconfirmed=[lost]), search(eager_record(), lost))
    assert (row["outcome"], row["technique"]) == ("no-improvement", "fusion")
    assert (row["speedup_best_baseline"], row["screen_speedup"]) == (0.7, None)


def test_nothing_found_has_no_figures() -> None:
    row = result_columns(result(None, compiled=False), search(eager_record(["degenerate"])))
    assert row["speedup_eager"] is None and row["record"] is None
    assert (row["sound"], row["task_flags"]) == (False, "degenerate")
    assert row["baselines"] == "eager 1.00x; compile not measured"


def test_seconds_are_told_apart_without_overlap() -> None:
    won = final("fusion", 2.0, 1.3)
    screened = record(candidate("fusion"), [timing("device", EAGER, 2.2, None)])
    row = result_columns(result(won), search(eager_record(), screened, won))
    assert (row["baselines_s"], row["screens_s"], row["finals_s"]) == (3.0, 3.0, 3.0)
    assert row["waiting_s"] == pytest.approx(12.0 - 9.0)
    assert row["search_s"] == pytest.approx(20.0 - 12.0)
    assert sum(stage_seconds(won.evaluation).values()) == pytest.approx(3.0)


def test_what_an_earlier_call_paid_for_costs_this_one_nothing() -> None:
    row = result_columns(result(None), search(records=(eager_record(),)))
    assert (row["baselines_s"], row["task_class"]) == (0.0, "tf32")
