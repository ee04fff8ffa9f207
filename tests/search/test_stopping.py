"""The stop rules are pure: tables of how far a search is and what they say."""

from __future__ import annotations

import pytest

from cuda_l1.search.stopping import Progress, StopRules

MINUTE = StopRules(budget_s=60.0, patience=6, final_budget_s=60.0)


@pytest.mark.parametrize(
    ("progress", "reason"),
    [
        (Progress(), None),
        (Progress(elapsed_s=47.9, tried=3, screen_s=2.0, pair_s=2.0), None),
        (Progress(elapsed_s=48.1, tried=3, screen_s=2.0, pair_s=2.0), "time-budget"),
        (Progress(elapsed_s=25.0, tried=3, screen_s=10.0, once_s=18.0, pair_s=2.0), None),
        (Progress(elapsed_s=31.0, tried=3, screen_s=10.0, once_s=18.0, pair_s=2.0), "time-budget"),
        (Progress(elapsed_s=25.0, tried=3, screen_s=10.0, pair_s=30.0), "time-budget"),
        (Progress(elapsed_s=50.0, tried=0, screen_s=2.0, pair_s=30.0), None),
        (Progress(elapsed_s=59.0, tried=0, screen_s=2.0, pair_s=30.0), "time-budget"),
        (Progress(without_gain=5), None),
        (Progress(without_gain=6), "no-gain"),
    ],
)
def test_time_for_the_final_is_kept(progress: Progress, reason: str | None) -> None:
    assert MINUTE.reason(progress) == reason


def test_the_reserve_is_what_a_final_will_take() -> None:
    assert MINUTE.reserve_s(Progress()) == 20.0
    assert MINUTE.reserve_s(Progress(pair_s=1.5)) == 7.5
    assert MINUTE.reserve_s(Progress(once_s=4.0, pair_s=1.5)) == 11.5
    assert MINUTE.reserve_s(Progress(once_s=18.0, pair_s=2.0)) == 20.0, "of 28 s, 10 may be late"
    assert MINUTE.reserve_s(Progress(once_s=18.0, pair_s=4.0)) == 28.0
    assert MINUTE.reserve_s(Progress(pair_s=15.0)) == 50.0, "five pairs do not fit three times a third: it stops there"
    assert MINUTE.reserve_s(Progress(pair_s=30.0)) == 80.0, "three there are at the least"
    assert StopRules(budget_s=600.0, final_budget_s=30.0).reserve_s(Progress(pair_s=8.0)) == 30.0


def test_what_is_judged_is_given_up_when_a_final_would_end_too_late() -> None:
    assert MINUTE.within_s(Progress(elapsed_s=20.0, tried=1, once_s=2.0, pair_s=2.0)) == 38.0
    assert MINUTE.within_s(Progress(elapsed_s=20.0, tried=0, once_s=2.0, pair_s=2.0)) == 50.0, "the first may take all"
    assert StopRules(patience=3).within_s(Progress(elapsed_s=1e6)) is None


def test_a_final_gets_what_is_left() -> None:
    assert MINUTE.final_s(Progress(elapsed_s=40.0, screen_s=2.0)) == 18.0
    assert MINUTE.final_s(Progress(elapsed_s=70.0, screen_s=2.0)) == 5.0
    assert StopRules(final_budget_s=30.0).final_s(Progress(elapsed_s=1e6)) == 30.0
    assert StopRules(budget_s=60.0, final_budget_s=3.0).final_s(Progress()) == 3.0


def test_baselines_begin_within_a_third() -> None:
    assert MINUTE.another_baseline(Progress(elapsed_s=19.9))
    assert not MINUTE.another_baseline(Progress(elapsed_s=20.1))
    assert MINUTE.another_baseline(Progress(elapsed_s=25.0, first_s=6.0)), "the first candidate takes none of it"
    assert MINUTE.another_baseline(Progress(elapsed_s=10.0), 9.9)
    assert not MINUTE.another_baseline(Progress(elapsed_s=10.0), 10.1), "it would end later"
    assert StopRules().another_baseline(Progress(elapsed_s=1e6), 1e6)


def test_without_limits_only_patience_ends_it() -> None:
    rules = StopRules(patience=3)
    assert rules.reason(Progress(elapsed_s=1e9, evaluations=10**6, tried=10**6, without_gain=2)) is None
    assert rules.reason(Progress(without_gain=3)) == "no-gain"


def test_the_roofline_is_reached_within_five_percent() -> None:
    rules = StopRules(roofline_us=10.0)
    assert rules.reason(Progress(best_us=10.4)) == "roofline"
    assert rules.reason(Progress(best_us=10.6)) is None
    assert rules.reason(Progress()) is None
