"""Figures from measurements: intervals, classes, rewards."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_l1 import exactness, ratios, scoring
from cuda_l1.types import UNSOUND_FLAGS, Correctness, Environment, Evaluation, Finding, Outcome, Timing, Trial

PLACE = Environment(device="cuda", device_name="H100", lane="gpu", rung="R1", torch="2.13.0")


def accepted(
    device: float = 2.0,
    call: float | None = None,
    call_high: float | None = None,
    got: str = "fp32",
    task: str = "fp32",
    suspects: tuple[str, ...] = (),
) -> Evaluation:
    def timing(clock: str, value: float, high: float | None = None) -> Timing:
        return Timing.model_validate(
            {"clock": clock, "opponent": "eager", "opponent_id": "e", "pairs": (), "speedup": value}
            | {"speedup_high": high, "candidate_us": 1.0, "opponent_us": value}
        )

    trial = Trial(kind="base", error=0.0, reference_error=0.0, bound=1.0, passed_class="fp32")
    return Evaluation(
        candidate_id="c",
        outcome=Outcome.ACCEPTED,
        correctness=Correctness.model_validate({"trials": (trial,), "precision_class": got, "task_class": task}),
        timings=(timing("device", device), *([timing("call", call, call_high)] if call else [])),
        findings=tuple(Finding(check=name, severity="suspect", evidence="e") for name in suspects),
        environment=PLACE,
        protocol="final",
    )


def test_the_interval_is_students_on_log_ratios() -> None:
    ratios = [math.log(x) for x in (1.9, 2.0, 2.1, 2.0, 2.0)]
    middle, low, high = scoring.interval(ratios)
    assert low < middle < high
    assert middle == pytest.approx(math.exp(sum(ratios) / 5))
    assert math.log(high) - math.log(middle) == pytest.approx(math.log(middle) - math.log(low))
    assert math.log(high / middle) == pytest.approx(2.776 * 0.0355 / math.sqrt(5), rel=0.01)


def test_more_pairs_narrow_the_interval_with_the_spread_of_the_first() -> None:
    first = [0.1, 0.2, 0.3, 0.2, 0.2]
    _, low5, high5 = scoring.interval(first)
    _, low20, high20 = scoring.interval(first + [0.2] * 15)
    sampled5, sampled20 = (
        math.log(hi / lo) ** 2 / 4 - scoring.RESOLUTION**2 for lo, hi in ((low5, high5), (low20, high20))
    )
    assert sampled20 == pytest.approx(sampled5 / 4)


def test_pairs_that_agree_leave_the_resolution() -> None:
    speedup, low, high = scoring.interval([0.3] * 5)
    assert math.log(high / speedup) == pytest.approx(scoring.RESOLUTION) == math.log(speedup / low)


def test_an_interval_needs_two_pairs() -> None:
    with pytest.raises(ValueError, match="two pairs"):
        scoring.interval([0.1])


@pytest.mark.parametrize(("disturbed", "most"), [(0.0, 0.985), (0.02, 1.0), (0.05, 1.0)])
def test_the_interval_covers_the_truth_nineteen_times_in_twenty(disturbed: float, most: float) -> None:
    """Also where a share of the pairs is off by a half, the later ones among them."""
    draw = random.Random(1)

    def pair() -> float:
        return draw.gauss(0.5, 0.05) + (draw.choice((-0.4, 0.4)) if draw.random() < disturbed else 0.0)

    hits = 0
    for _ in range(2000):
        first = [pair() for _ in range(5)]
        rest = scoring.pairs_needed(first, 0.03) - 5
        _, low, high = scoring.interval(first + [pair() for _ in range(rest)])
        hits += low <= math.exp(0.5) <= high
    assert 0.935 <= hits / 2000 <= most


@pytest.mark.parametrize(("spread", "expected"), [(0.0, 5), (0.01, 5), (0.1, 20)])
def test_steins_rule_stays_between_five_and_twenty(spread: float, expected: int) -> None:
    assert scoring.pairs_needed([0.0, spread, -spread, spread, -spread], 0.03) == expected


@pytest.mark.parametrize(("us", "half"), [(5.0, 0.03), (20.0, 0.02), (99.0, 0.02), (100.0, 0.01)])
def test_short_calls_may_have_wider_intervals(us: float, half: float) -> None:
    assert scoring.target_half_width(us) == half


@pytest.mark.parametrize("value", [1e13, 1e20, 1e308])
def test_what_nobody_measured_is_printed_too(value: float) -> None:
    assert ratios.towards_one(value) <= value


@given(st.floats(0.01, 1000.0))
def test_rounding_never_flatters(value: float) -> None:
    rounded = ratios.towards_one(value)
    assert abs(rounded - value) < 0.01 + 1e-9
    least = 1e-8  # what a product of floats may lose, which is not taken for a flattery
    assert (1.0 <= rounded <= value + least) if value >= 1 else (value - least <= rounded <= 1.0)


def test_a_verdict_without_a_wall_never_counts() -> None:
    good = accepted(2.0)
    unconfined = good.model_copy(update={"environment": PLACE.model_copy(update={"rung": "R0"})})
    assert scoring.counts(good) and not scoring.counts(unconfined) and not scoring.counts(unconfined, "relaxed")
    assert (scoring.reward(good), scoring.reward(unconfined)) == (2.0, 1.0)


@pytest.mark.parametrize(
    ("got", "task", "precision", "good"),
    [
        ("fp32", "fp32", "default", True),
        ("tf32", "fp32", "default", False),
        ("tf32", "tf32", "default", True),
        ("tf32", "fp32", "tf32", True),
        ("tf32", "tf32", "fp32", False),
        ("relaxed", "fp32", "tf32", False),
        ("relaxed", "fp32", "relaxed", True),
        ("bf16", "bf16", "fp32", True),
        ("relaxed", "bf16", "default", False),
        ("relaxed", "bf16", "fp32", False),
        ("exact", "exact", "relaxed", True),
        ("fp32", "exact", "fp32", False),
    ],
)
def test_which_class_counts(got: str, task: str, precision: str, good: bool) -> None:
    assert scoring.counts(accepted(got=got, task=task), precision) is good


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (3e-4, "(trial `scaled`: errs by 3.0e-04; the reference by 2.0e-06)"),
        (
            3e-6,
            "(trial `scaled`: errs by 3.0e-06, most elements or small parts by too much; the reference by 2.0e-06)",
        ),
        (None, "(trial `scaled`)"),
    ],
)
def test_what_is_less_exact_than_asked_for_says_in_which_trial(error: float | None, said: str) -> None:
    found = accepted(got="tf32").correctness
    assert found is not None and exactness.less_exact(found) == "class tf32 is less exact than asked for"
    trial = Trial(kind="scaled", error=error, reference_error=2e-6, bound=3.2e-5, passed_class="tf32")
    assert exactness.less_exact(found.model_copy(update={"trials": (*found.trials, trial, trial)})).endswith(said)


def test_suspects_do_not_count_but_precision_and_unstable_follow_their_own_rules() -> None:
    assert not scoring.counts(accepted(suspects=("clock-mismatch",)))
    assert scoring.counts(accepted(suspects=("precision", "unstable")))


def test_no_suspicion_keeps_eager_from_being_compared_with_but_its_class_may() -> None:
    assert scoring.counts(accepted(suspects=("busy-machine",)), is_eager=True)
    assert not scoring.counts(accepted(got="tf32", suspects=("busy-machine",)), is_eager=True)


@pytest.mark.parametrize("flag", sorted(UNSOUND_FLAGS))
def test_no_result_of_an_unsound_task_stands_in_a_headline(flag: str) -> None:
    good = accepted(2.0).model_copy(update={"task_flags": ("stateful",)})
    assert scoring.in_headline(good) and not scoring.in_headline(accepted(2.0, got="tf32"))
    unsound = good.model_copy(update={"task_flags": ("stateful", flag)})
    assert scoring.counts(unsound) and not scoring.in_headline(unsound)


def test_reward_is_the_speedup_and_no_more_than_one_where_something_is_wrong() -> None:
    assert scoring.reward(accepted(3.0)) == 3.0
    assert scoring.reward(accepted(3.0, suspects=("clock-mismatch",))) == 1.0
    assert scoring.reward(accepted(0.5, suspects=("clock-mismatch",))) == 0.5
    assert scoring.reward(accepted(3.0, got="relaxed")) == 1.0
    assert scoring.reward(accepted(3.0, call=0.8)) == 1.0
    failed = Evaluation(candidate_id="c", outcome=Outcome.CRASHED, environment=PLACE, protocol="screen")
    assert scoring.reward(failed) == 0.0 and scoring.speedup(failed) is None


def test_the_best_baseline_is_the_fastest_and_of_equals_the_first() -> None:
    assert scoring.best_baseline({"eager": 1.0, "compile": 1.2, "cuda-graph": 1.1}) == "compile"
    assert scoring.best_baseline({"eager": 1.0, "compile": 1.0}) == "eager"
    assert scoring.best_baseline({"compile": 0.5}) == "compile"
    assert scoring.best_baseline({}) is None


def test_eager_against_itself_is_one_where_it_was_timed() -> None:
    own = accepted(1.07)
    assert scoring.speedup(own) == 1.07
    assert scoring.speedup(own, is_eager=True) == 1.0
    assert scoring.speedup(own, "throughput", is_eager=True) is None


def test_slower_on_the_other_clock_beyond_its_noise() -> None:
    assert not scoring.slower_on_other_clock(accepted())
    assert not scoring.slower_on_other_clock(accepted(call=0.95))
    assert scoring.slower_on_other_clock(accepted(call=0.85))
    assert not scoring.slower_on_other_clock(accepted(call=0.95, call_high=1.02))
    assert scoring.slower_on_other_clock(accepted(call=0.97, call_high=0.99))
    assert scoring.slower_on_other_clock(accepted(device=0.5, call=2.0), clock="call")


# ── From rewards to advantages ────────────────────────────────────────────────────────────────────

RAW = st.one_of(st.just(0.0), st.floats(1e-3, 1e4))
"""A failure, or a speed-up."""
SHAPINGS = st.sampled_from(["raw", "smoothed", "log", "rank"])
SCALES = st.sampled_from(["group", "batch", "none"])


@given(st.lists(RAW, min_size=1, max_size=40), st.lists(RAW, max_size=40))
def test_running_moments_are_those_of_all_rewards(first: list[float], later: list[float]) -> None:
    moments = scoring.Moments().after(first).after(later)
    assert moments.count == len(first + later)
    assert moments.mean == pytest.approx(statistics.fmean(first + later), rel=1e-9, abs=1e-12)
    assert moments.deviation == pytest.approx(statistics.pstdev(first + later), rel=1e-6, abs=1e-6)


@given(
    st.lists(RAW, min_size=2, max_size=16),
    st.lists(RAW, max_size=40),
    SHAPINGS,
    SCALES,
    st.floats(0.1, 10),
    st.floats(0, 0.5),
)
def test_no_failure_ranks_above_a_success(
    group: list[float], before: list[float], shaping: scoring.Shaping, scale: scoring.Scale, clip: float, noise: float
) -> None:
    moments = scoring.Moments().after([*before, *group])
    counted = scoring.shaped(group, shaping, moments, clip, noise)
    (found,) = scoring.advantages([counted], scale)
    for reward, value in zip(group, found, strict=True):
        for other, least in zip(group, found, strict=True):
            assert reward <= other or value >= least
    failures = [value for reward, value in zip(group, found, strict=True) if reward == 0.0]
    successes = [value for reward, value in zip(group, found, strict=True) if reward > 0.0]
    assert not failures or not successes or max(failures) <= min(successes)


@given(st.lists(RAW, min_size=2, max_size=16), st.lists(RAW, max_size=40))
def test_a_smoothed_reward_stays_within_the_clip_and_is_linear_inside(group: list[float], before: list[float]) -> None:
    moments = scoring.Moments().after([*before, *group])
    for reward in group:
        value = scoring.smoothed(reward, moments, 1.5)
        assert abs(value) <= 1.5
        if abs(value) < 1.5 and moments.deviation > 0:
            assert value * moments.deviation + moments.mean == pytest.approx(reward, rel=1e-6, abs=1e-6)


def test_a_group_of_failures_and_one_success_is_told_apart_from_its_first_step_on() -> None:
    rewards = [0.0, 0.0, 0.0, 2.0]
    moments = scoring.Moments().after(rewards)
    counted = scoring.shaped(rewards, "smoothed", moments, 1.5)
    assert counted == pytest.approx([-0.5774, -0.5774, -0.5774, 1.5], abs=1e-4)  # (2 - 0.5) / 0.866 = 1.73, clipped


def test_what_two_screens_of_a_variant_differ_by_counts_little_beside_a_failure() -> None:
    equal, failed, faster = [1.0, 1.02, 0.99, 1.01], [1.0, 0.0, 1.02, 1.01], [1.0, 1.5, 1.01, 0.99]
    for rewards, least, greatest in ((equal, 0.0, 0.31), (failed, 1.5, 1.5), (faster, 1.5, 1.5)):
        moments = scoring.Moments().after(rewards)
        counted = scoring.shaped(rewards, "smoothed", moments, 1.5, 0.05)
        assert least <= max(map(abs, counted)) <= greatest
        paper = scoring.shaped(rewards, "smoothed", moments, 1.5)
        assert max(map(abs, paper)) > 1.3, "by the paper's formula all three count alike"


def test_a_reward_unlike_all_before_counts_the_limit() -> None:
    same = scoring.Moments().after([1.0, 1.0])
    assert [scoring.smoothed(reward, same, 1.5) for reward in (0.0, 1.0, 2.0)] == [-1.5, 0.0, 1.5]


def test_equal_rewards_give_no_advantage_and_ties_share_a_rank() -> None:
    assert scoring.advantages([[3.0, 3.0, 3.0]]) == [[0.0, 0.0, 0.0]]
    assert scoring.shaped([0.0, 2.0, 0.0, 5.0], "rank", scoring.Moments(), 1.5) == [0.5, 2.0, 0.5, 3.0]


@given(st.lists(st.lists(st.one_of(st.none(), RAW), min_size=1, max_size=8), min_size=1, max_size=4), SCALES)
def test_what_could_not_be_judged_counts_nowhere(groups: list[list[float | None]], scale: scoring.Scale) -> None:
    found = scoring.advantages(groups, scale)
    judged = scoring.advantages([[r for r in group if r is not None] for group in groups], scale)
    for group, values, known in zip(groups, found, judged, strict=True):
        assert [v for r, v in zip(group, values, strict=True) if r is not None] == known
        assert all(v == 0.0 for r, v in zip(group, values, strict=True) if r is None)
        assert sum(known) == pytest.approx(0.0, abs=1e-6 * max(1.0, *map(abs, known), 0.0))


def test_the_scale_of_a_group_is_taken_out_and_that_of_a_batch_kept() -> None:
    small, large = [0.9, 1.1], [9.0, 11.0]
    by_group = scoring.advantages([small, large])
    assert by_group[0] == pytest.approx(by_group[1], rel=1e-2)
    by_batch = scoring.advantages([small, large], "batch")
    assert by_batch[1][1] == pytest.approx(10 * by_batch[0][1])
    assert scoring.advantages([small], "none") == [pytest.approx([-0.1, 0.1])]
