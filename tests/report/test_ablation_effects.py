"""What each technique contributes, against figures worked out by hand."""

from __future__ import annotations

import math

import pytest
from report_fakes import timing

from cuda_l1.report.ablation import Measured, effects, interactions, measured
from cuda_l1.types import Pair


def speedups(half: float = 0.0, **figures: float) -> dict[frozenset[str], Measured]:
    """`a_b=6.0`: techniques a and b together; each known to within `half`, in log ratio."""
    return {frozenset(name.split("_")): Measured(value, half) for name, value in figures.items()}


def pair(speedup: float) -> Pair:
    return Pair(candidate_us=(10.0,), opponent_us=(20.0,), candidate_pid=1, opponent_pid=2, log_ratio=math.log(speedup))


def test_two_techniques_that_multiply():
    measured = speedups(a=2.0, b=3.0, a_b=6.0)
    first, second = effects(["a", "b"], measured)
    assert (first.alone, first.in_all, first.mean, first.best_without) == pytest.approx((2.0, 2.0, 2.0, 3.0))
    assert (second.alone, second.in_all, second.mean, second.best_without) == pytest.approx((3.0, 3.0, 3.0, 2.0))
    assert [e.verdict for e in (first, second)] == ["adds", "adds"]
    (pair,) = interactions(["a", "b"], measured)
    assert pair.ratio == pytest.approx(1.0) and pair.verdict == "multiply"


def test_a_gatekeeper_is_what_the_others_need():
    gate, other = effects(["gate", "other"], speedups(gate=1.5, other=1.0, gate_other=4.0))
    assert gate.verdict == "gatekeeper" and other.verdict == "adds"
    assert other.in_all == pytest.approx(4.0 / 1.5) and other.best_without == 1.5
    (pair,) = interactions(["gate", "other"], speedups(gate=1.5, other=1.0, gate_other=4.0))
    assert pair.ratio == pytest.approx(4.0 / 1.5) and pair.verdict == "help each other"


def test_what_does_everything_by_itself_is_no_gatekeeper():
    does, idle = effects(["does", "idle"], speedups(does=5.0, idle=1.0, does_idle=5.1))
    assert (does.verdict, idle.verdict) == ("adds", "no effect")


def test_what_makes_things_slower_harms():
    good, bad = effects(["good", "bad"], speedups(good=2.0, bad=0.8, good_bad=1.5))
    assert (good.verdict, bad.verdict) == ("adds", "harms")
    assert bad.mean == pytest.approx((0.8 * 0.75) ** 0.5) and bad.best_without == 2.0


def test_the_mean_is_over_every_subset_of_the_others():
    measured = speedups(a=2.0, b=1.0, c=1.0, a_b=2.0, a_c=8.0, b_c=1.0, a_b_c=8.0)
    assert effects(["a", "b", "c"], measured)[0].mean == pytest.approx((2 * 2 * 8 * 8) ** 0.25)


def test_what_has_no_speedup_is_left_open():
    first, second = effects(["a", "b"], speedups(a=2.0))
    assert first.in_all is None and first.mean == pytest.approx(2.0)
    assert (second.alone, second.mean, second.verdict) == (None, None, "unknown")
    assert interactions(["a", "b"], speedups(a=2.0))[0].verdict == "unknown"


def test_what_lies_within_the_spread_is_not_decided():
    known = speedups(kept=1.01, fusion=3.95, kept_fusion=4.35)
    assert effects(["kept", "fusion"], known)[0].verdict == "adds"
    spread = speedups(0.1, kept=1.01, fusion=3.95, kept_fusion=4.35)
    kept, fusion = effects(["kept", "fusion"], spread)
    assert (kept.verdict, fusion.verdict) == ("not decided", "adds")
    assert kept.half == pytest.approx(math.sqrt(3 * 0.1**2) / 2) and kept.mean == pytest.approx(
        (1.01 * 4.35 / 3.95) ** 0.5
    )
    (pair,) = interactions(["kept", "fusion"], spread)
    assert pair.verdict == "not decided" and pair.half == pytest.approx(0.1 * math.sqrt(3))
    assert interactions(["kept", "fusion"], known)[0].verdict == "help each other"


def test_no_effect_takes_measurements_that_would_show_one():
    verdicts = [effects(["a"], speedups(half, a=1.01))[0].verdict for half in (0.0, 0.02, 0.2)]
    assert verdicts == ["no effect", "no effect", "not decided"]


def test_with_intervals_an_effect_is_one_that_excludes_1():
    intervals = {subset: m._replace(is_interval=True) for subset, m in speedups(0.01, a=0.96, b=2.0, a_b=1.92).items()}
    assert [e.verdict for e in effects(["a", "b"], intervals)] == ["harms", "adds"]
    single = speedups(0.01, a=0.96, b=2.0, a_b=1.92)
    assert effects(["a", "b"], single)[0].verdict == "no effect"
    assert interactions(["a", "b"], intervals | speedups(0.01, a_b=1.86))[0].verdict == "multiply"
    closer = {subset: m._replace(is_interval=True) for subset, m in speedups(0.01, a=0.96, b=2.0, a_b=1.86).items()}
    assert interactions(["a", "b"], closer)[0].verdict == "overlap"


def test_a_gatekeeper_is_one_beyond_the_spread():
    figures = {"gate": 1.5, "other": 1.0, "gate_other": 4.0}
    verdicts = [effects(["gate", "other"], speedups(half, **figures))[0].verdict for half in (0.05, 0.4)]
    assert verdicts == ["gatekeeper", "adds"]


def test_a_speedup_is_known_by_its_interval_its_pairs_or_its_samples():
    final = timing(2.0, half=0.05)
    assert measured([final]) == pytest.approx((2.0, 0.05, 1, True))
    one, other = (timing(value, half=None, pairs=(pair(value),)) for value in (2.0, 2.2))
    middle, half, pairs, is_interval = measured([one, other])
    assert middle == pytest.approx(math.sqrt(2.0 * 2.2)) and pairs == 2 and is_interval
    assert half == pytest.approx(math.hypot(12.706 * math.log(1.1) / 2, 0.002))
    spread = pair(2.0).model_copy(update={"candidate_us": tuple(float(us) for us in range(100, 201, 10))})
    assert measured([timing(2.0, half=None, pairs=(spread,))]) == pytest.approx(
        (2.0, math.log(190 / 110) / 2, 1, False)
    )
    assert measured([one]) == Measured(2.0, 0.0, 1)
