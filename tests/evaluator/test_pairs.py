"""How many pairs a final has: the first five whatever the budget says, unless they would take far too long."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from test_timing import CANDIDATE, EAGER, FakeBench, bench

from cuda_l1.config import FINAL, SCREEN, Limits, Protocol
from cuda_l1.evaluator import timing
from cuda_l1.evaluator.timing import Timer


class Clock:
    """Time that passes only when a runner is prepared."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        pass


def timed(monkeypatch: pytest.MonkeyPatch, protocol: Protocol, pair_s: float, made: FakeBench | None = None) -> Timer:
    """A finished timer on a clock by which each pair takes `pair_s` seconds."""
    clock, made = Clock(), made or bench()
    ask = made.ask

    def asking(runner, op, *given, **fields):
        if op == "verify_timed":  # once in each pair
            clock.now += pair_s
        return ask(runner, op, *given, **fields)

    monkeypatch.setattr(made, "ask", asking)
    monkeypatch.setattr(timing, "time", SimpleNamespace(monotonic=clock.monotonic, sleep=clock.sleep))
    timer = Timer(made, "cpu", protocol, [("eager", EAGER)], lambda candidate: Limits(), "fp32")  # type: ignore[arg-type]
    timer.run(CANDIDATE, made.runner_for(CANDIDATE, Limits()))
    return timer


def wild() -> FakeBench:
    """Pairs that differ so much that the rule asks for all twenty."""
    made = bench()
    made.drift = {pid: 1 + 0.05 * (pid % 5) for pid in range(100)}
    return made


def notes(timer: Timer) -> list[str]:
    return [f.evidence for f in timer.findings() if f.check == "few-pairs"]


def test_a_final_completes_its_first_five_pairs_beyond_its_budget(monkeypatch):
    timer = timed(monkeypatch, FINAL.model_copy(update={"budget_s": 10.0}), pair_s=5.0)
    assert len(timer.pairs) == 5 and notes(timer) == []


def test_the_budget_limits_the_pairs_after_the_first_five(monkeypatch):
    timer = timed(monkeypatch, FINAL.model_copy(update={"budget_s": 80.0}), pair_s=10.0, made=wild())
    assert len(timer.pairs) == 8 and notes(timer) == []


def test_five_pairs_that_would_take_far_too_long_end_with_a_note(monkeypatch):
    timer = timed(monkeypatch, FINAL.model_copy(update={"budget_s": 10.0}), pair_s=7.0)
    assert len(timer.pairs) == 3
    (note,) = notes(timer)
    assert "rests on 3 pairs" in note
    assert [f.severity for f in timer.findings()] == ["note"]
    (figure,) = timer.timings(())
    assert figure.speedup_low is not None


def test_a_screen_of_one_pair_has_no_such_note(monkeypatch):
    assert notes(timed(monkeypatch, SCREEN, pair_s=1000.0)) == []
