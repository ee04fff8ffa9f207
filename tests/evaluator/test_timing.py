"""The schedule and the arithmetic of timing, against a bench whose runners take as long as they are told."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from evaluator_support import LINEAR, candidate_of, task_of

from cuda_l1.config import FINAL, SCREEN, Limits, Protocol
from cuda_l1.errors import InfrastructureError
from cuda_l1.evaluator.blocks import ENOUGH_CALLS, STRANGE_CALLS, STRANGE_SHARE, Blocks
from cuda_l1.evaluator.evaluation import eager_candidate
from cuda_l1.evaluator.failures import Failure
from cuda_l1.evaluator.findings import observed
from cuda_l1.evaluator.findings.clocks import ClockEvidence
from cuda_l1.evaluator.pairs import PairResult, Side
from cuda_l1.evaluator.timing import Timer
from cuda_l1.types import Outcome

TASK = task_of(LINEAR)
EAGER = eager_candidate(TASK)
CANDIDATE = candidate_of(TASK, "ours", "techniques")
NOBODY: Any = None
"""In place of a runner, where figures alone are looked at."""
COMPILE, GRAPH = candidate_of(TASK, "compile"), candidate_of(TASK, "graph")


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(observed, "SETTLE_S", 0.0)
    monkeypatch.setattr(observed, "IDLE_S", 0.001)


class FakeBench:
    """Runners by candidate id: microseconds a call, what the judge sees beyond, when they fail."""

    def __init__(self, us: dict[str, float], *, noise: float = 0.01) -> None:
        self.us, self.noise = us, noise
        self.hidden: dict[str, float] = {}
        """What only the judge sees of a call: inside its window, and beside it."""
        self.cold_us, self.late_in_a_row = 0.0, False
        self.between: dict[str, Callable[[], float]] = {}
        """What a call takes more among several in a row than alone."""
        self.beside: dict[str, float] = {}
        self.fails: dict[tuple[str, str], int] = {}
        """(candidate id, operation): in which call of that operation."""
        self.calls: dict[tuple[str, str], int] = {}
        self.facts: dict[str, Any] = {"input_bytes": 4096, "output_bytes": 4096, "reference_us": 100.0}
        self.alive: list[Any] = []
        self.prepares: list[tuple[bool, bool]] = []
        """Of each, whether it had fresh inputs and was looked at for caching."""
        self.expected: list[int] = []
        """How many processes each pair announced."""
        self.pids = 0
        self.random = random.Random(1)
        self.drift: dict[int, float] = {}
        self.idle_s: dict[str, Callable[[], float]] = {}
        """Processor seconds so far, by candidate id."""
        self.late_reuse = False
        self.timed_class: dict[tuple[str, int], str] = {}
        """What the nth call of an operation shows of a candidate; else what it was."""
        self.small_parts = False
        self.classes: list[tuple[str, str, str | None]] = []
        """What was asked: the operation, the class so far, and that of the trials."""
        self.stolen_s: dict[str, list[float]] = {}
        """Processor time that is used each time that a runner is stopped."""
        self.drawn_ahead = False
        self.left: dict[str, int] = {}
        """Threads that each call leaves."""
        self.profile: dict[str, Any] | None = None
        """What a profiler shows."""
        self.shared = False
        self.transport_us = lambda: 40 + abs(self.random.gauss(0, 5))

    def runner_for(self, candidate, limits, beside=None):
        self._count(candidate.id, "load")
        self.pids += 1
        nothing = dict.fromkeys(("stop", "resume", "dismiss"), lambda: None)
        guest = SimpleNamespace(pid=self.pids, log_tail=lambda n: "log", **nothing)
        guest.stolen_s = lambda: self.stolen_s.get(candidate.id, [0.0])
        guest.processor_s = self.idle_s.get(candidate.id, lambda: 0.0)
        guest.threads = lambda: 1 + self.left.get(candidate.id, 0) * self.calls.get((candidate.id, "called"), 0)
        runner = SimpleNamespace(guest=guest, candidate=candidate, name=str(self.pids))
        self.alive.append(runner)
        return runner

    def warm_up_for(self, cast):
        self.expected.append(len(cast))

    def settle(self):
        pass

    def release(self, runner, keep_caches=None):
        self.alive.remove(runner)

    def share_core(self, runners):
        self.shared = True

    def spread(self):
        self.shared = False

    def deadlines(self, limits):
        return {"call_s": 1.0}

    def _count(self, identity: str, op: str) -> None:
        key = identity, op
        self.calls[key] = self.calls.get(key, 0) + 1
        if self.fails.get(key) == self.calls[key]:
            raise Failure(Outcome.CRASHED, f"fails in {op}", "its log")

    def ask(self, runner, op, timeout, *, quiet=False, **fields):
        identity = runner.candidate.id
        self._count(identity, op)
        us = self.us[identity]
        if op == "prepare":
            self.prepares.append((fields["fresh_sets"], fields["look_for_caching"]))
            return {"us": us, "reused": False, "peak_bytes": None, "empty_us": 1.0, "supply_us": 50.0}
        if op == "observe":
            return {"patched": [], "missing": ""}
        if op == "witness":
            assert any(each.guest.pid == int(fields["of"]) for each in self.alive if each is not runner)
            return {"unlike": "another answer" if self.drawn_ahead else None}
        if op in ("verify_weights", "verify_timed"):
            passed = self.timed_class.get((op, self.calls[identity, op]), fields["precision_class"])
            shown = {"precision_class": passed, "small_parts": self.small_parts}
            self.classes.append((op, fields["precision_class"], fields.get("checked_class")))
            if op == "verify_weights":
                return shown
            return {"compared": 3, "wrong": None, "error": 1e-7, "bound": 1e-6, "reused": self.late_reuse, **shown}
        if op == "profile":
            return {"streams": 3, "profile": self.profile}
        if op == "back_to_back":
            is_ours = identity == CANDIDATE.id
            us += self.between.get(identity, lambda: 0.0)()
            cold_us, late = (self.cold_us, self.late_in_a_row) if is_ours else (0.0, False)
            return {"row": {"us": us, "cold_us": cold_us, "late": late}}
        assert op == "block" and self.shared
        us *= self.drift.get(runner.guest.pid, 1.0)
        self.calls[identity, "called"] = self.calls.get((identity, "called"), 0) + fields["calls"]
        samples = [us * (1 + self.random.gauss(0, self.noise)) for _ in range(fields["calls"])]
        return {
            "samples": samples,
            "judge": [s + self.transport_us() + self.hidden.get(identity, 0.0) for s in samples],
            "outside": [self.transport_us() + self.beside.get(identity, 0.0) for _ in samples],
            "late": False,
            "opened": 0,
        }


def timer_for(bench: FakeBench, *baselines, protocol: Protocol = SCREEN) -> Timer:
    opponents = [("eager", EAGER), *((name, c) for name, c in baselines)]
    return Timer(bench, "cpu", protocol, opponents, lambda c: Limits(), "fp32")


def timed(bench: FakeBench, *baselines, protocol: Protocol = SCREEN) -> Timer:
    timer = timer_for(bench, *baselines, protocol=protocol)
    timer.run(CANDIDATE, bench.runner_for(CANDIDATE, Limits()))
    assert bench.alive == []  # every runner is dead
    return timer


def bench(**more: float) -> FakeBench:
    speeds = {"candidate_us": 500.0, "eager_us": 1000.0, "compile_us": 800.0, "graph_us": 700.0} | more
    ids = {"candidate_us": CANDIDATE.id, "eager_us": EAGER.id, "compile_us": COMPILE.id, "graph_us": GRAPH.id}
    return FakeBench({ids[name]: us for name, us in speeds.items()})


def test_a_screen_is_one_pair_without_an_interval():
    timer = timed(bench())
    (timing,) = timer.timings(())
    assert len(timing.pairs) == 1 and timing.speedup_low is None and timing.clock == "call"
    assert timing.speedup == pytest.approx(2.0, rel=0.02) and timing.opponent == "eager" and timing.best_of == ()
    assert timing.candidate_us == pytest.approx(500, rel=0.02) and timer.findings() == []
    assert timer.compared == 3


def test_a_final_is_at_least_five_fresh_pairs_with_an_interval():
    timer = timed(bench(), protocol=FINAL)
    (timing,) = timer.timings(())
    assert len(timing.pairs) == 5
    assert timing.speedup_low < timing.speedup < timing.speedup_high < 1.1 * timing.speedup_low
    assert timing.speedup == pytest.approx(2.0, rel=0.03)
    pids = [pid for pair in timing.pairs for pid in (pair.candidate_pid, pair.opponent_pid)]
    assert len(set(pids)) == len(pids) == 10  # a runner serves one pair


def test_pairs_that_differ_ask_for_more_pairs_up_to_twenty():
    wild = bench()
    wild.drift = {pid: 1 + 0.05 * (pid % 5) for pid in range(100)}
    timer = timed(wild, protocol=FINAL)
    assert len(timer.pairs) == 20
    slightly = bench()
    slightly.drift = {pid: 1 + 0.004 * (pid % 5) for pid in range(100)}
    assert 5 <= len(timed(slightly, protocol=FINAL).pairs) < 20


def test_the_budget_ends_a_final_after_three_pairs_at_the_least():
    timer = timed(bench(), protocol=FINAL.model_copy(update={"budget_s": 1e-9}))
    (timing,) = timer.timings(())
    assert len(timing.pairs) == 3 and timing.speedup_low is not None


def test_what_any_timed_call_shows_is_the_class_of_the_verdict():
    made = bench()
    made.timed_class = {("verify_timed", 3): "tf32"}
    timer = timed(made, protocol=FINAL)
    assert timer.precision_class == "tf32" and len(timer.pairs) == 5 and timer.findings() == []
    first, again = ("verify_weights", "fp32", "fp32"), ("verify_weights", "tf32", "fp32")
    asked = [each for each in made.classes if each[0] == "verify_weights"]
    assert asked == [first, again], "in the first pair, and in the one that shows another class"
    assert [now for op, now, _ in made.classes if op == "verify_timed"] == ["fp32"] * 3 + ["tf32"] * 2


@pytest.mark.parametrize("op", ["verify_timed", "verify_weights"])
@pytest.mark.parametrize("small_parts", [False, True])
def test_what_is_relaxed_once_calls_are_timed_is_suspect_as_in_the_trials(op, small_parts):
    made = bench()
    made.timed_class, made.small_parts = {(op, 1): "relaxed"}, small_parts
    timer = timed(made)
    found = [finding.check for finding in timer.findings() if finding.severity == "suspect"]
    assert timer.precision_class == "relaxed" and found == ["precision", *["small-parts"] * small_parts]


def test_every_opponent_is_timed_in_the_same_pairs_and_the_last_is_the_best():
    timer = timed(bench(), ("compile", COMPILE), ("graph", GRAPH))
    names = ("eager", "compile", "graph")
    timings = {t.opponent: t for t in timer.timings(names)}
    assert set(timings) == set(names) and timings["graph"].best_of == names
    assert timings["eager"].best_of == timings["compile"].best_of == ()
    assert timings["graph"].speedup == pytest.approx(1.4, rel=0.03) and timings["graph"].opponent_id == GRAPH.id


def test_eager_itself_may_be_the_best_baseline():
    (timing,) = timed(bench()).timings(("eager", "compile"))
    assert timing.best_of == ("eager", "compile")


@pytest.mark.parametrize("op", ["load", "prepare", "block"])
def test_a_baseline_that_fails_is_named_and_never_claimed_beaten(op):
    broken = bench()
    broken.fails[GRAPH.id, op] = 1
    timer = timed(broken, ("graph", GRAPH))
    (timing,) = timer.timings(("eager", "graph"))
    assert timer.dropped == {"graph": f"fails in {op}"} and timing.opponent == "eager" and timing.best_of == ()


@pytest.mark.parametrize("op", ["load", "prepare", "block"])
def test_a_baseline_that_fails_in_a_later_pair_leaves_every_pair(op):
    broken = bench()
    broken.fails[GRAPH.id, op] = 8 if op == "block" else 2
    timer = timed(broken, ("graph", GRAPH), protocol=FINAL)
    (timing,) = timer.timings(("eager", "graph"))
    assert list(timer.dropped) == ["graph"] and timing.opponent == "eager" and len(timing.pairs) == 5


@pytest.mark.parametrize("op", ["load", "prepare", "block"])
def test_a_reference_that_fails_in_its_runner_is_nobodys_outcome(op):
    broken = bench()
    broken.fails[EAGER.id, op] = 1
    with pytest.raises(InfrastructureError, match="reference itself failed in a runner: CRASHED: fails in"):
        timed(broken)
    assert broken.alive == []


@pytest.mark.parametrize("op", ["prepare", "block", "verify_timed", "verify_weights"])
def test_a_candidate_that_fails_while_it_is_timed_fails(op):
    broken = bench()
    broken.fails[CANDIDATE.id, op] = 1
    with pytest.raises(Failure) as caught:
        timed(broken)
    assert caught.value.outcome is Outcome.CRASHED and broken.alive == []


def test_eager_of_the_first_pair_may_be_ready_before_the_device_is_there():
    made = bench()
    timer = timer_for(made, ("compile", COMPILE), protocol=FINAL)
    timer.prepare_ahead()
    (ahead,) = made.alive
    assert ahead.candidate is EAGER
    timer.run(CANDIDATE, made.runner_for(CANDIDATE, Limits()))
    assert made.alive == [] and made.calls[EAGER.id, "prepare"] == len(timer.pairs) == 5
    assert timer.pairs[0].sides[1].runner is ahead
    # The first pair lacks the baseline alone; of later ones all are announced at once, so that they come up together.
    assert made.expected == [1, 3, 3, 3, 3]
    assert [fresh for fresh, _ in made.prepares] == [True, False, False, *[True, False, False] * 4]
    assert sum(caching for _, caching in made.prepares) == 5, "asked of the candidate"


def test_what_was_ready_and_never_timed_is_ended():
    made = bench()
    timer = timer_for(made)
    timer.prepare_ahead()
    timer.close()
    assert made.alive == []
    broken = bench()
    broken.fails[CANDIDATE.id, "prepare"] = 1
    timer = timer_for(broken)
    timer.prepare_ahead()
    with pytest.raises(Failure):
        timer.run(CANDIDATE, broken.runner_for(CANDIDATE, Limits()))
    assert broken.alive == []


def test_on_a_gpu_a_sides_share_is_wall_time():
    """A short call's cycle takes many times the call: after one block it is known how long."""
    blocks = Blocks(bench(), False, SCREEN, ("device", "call"), lambda c: Limits())
    share_us = 0.3e6 / 4
    ones = [1] * 6
    count, calls = blocks.after_first(
        (6, 20), ones, 22 * 1500.0, 2
    )  # of 1.5 ms each, two that are no samples with them
    assert count == 6 and calls == 3 and 22 * 1500 + 5 * (calls + 2) * 1500 <= share_us
    assert blocks.after_first((6, 20), [3] * 6, 24 * 1500.0, 2)[1] == 1, "four that are no samples"
    assert blocks.after_first((6, 20), ones, 22 * 100.0, 2) == (6, 20), "what was planned is enough"
    assert blocks.after_first((3, 1), [1] * 3, 5e6, 2) == (3, 2), "the least number of samples, however long they take"
    on_cpu = Blocks(bench(), True, SCREEN, ("call",), lambda c: Limits())
    assert on_cpu.after_first((6, 20), ones, 22 * 1500.0, 2) == (6, 20)


def side_that_takes(us):
    return SimpleNamespace(prepared={"us": us, "supply_us": 10.0})


@pytest.mark.parametrize("calls", [1, 2, 4, 40])
def test_slow_calls_have_a_strange_one_for_certain(calls):
    blocks = Blocks(bench(), True, SCREEN, ("call",), lambda c: Limits())
    chosen = [blocks.strange(side_that_takes(1e6), (5, calls), 2) for _ in range(200)]
    assert all(sum(each) >= 1 and set(each) <= {0, 1} for each in chosen)
    assert all(any(each[place] for each in chosen) for place in range(5))
    assert calls < ENOUGH_CALLS or all(sum(each) == 5 for each in chosen)


def test_quick_calls_have_as_many_strange_ones_as_there_are_forms():
    blocks = Blocks(bench(), True, SCREEN, ("call",), lambda c: Limits())
    assert blocks.strange(side_that_takes(100.0), (6, 30), 2) == [STRANGE_CALLS // 6] * 6
    some = blocks.strange(side_that_takes(9000.0), (6, 2), 2)
    assert 0.15e6 * STRANGE_SHARE / 9500.0 - 1 <= sum(some) <= 14


def test_a_slow_call_still_gets_the_least_number_of_samples():
    (timing,) = timed(bench(candidate_us=2e6, eager_us=2e6)).timings(())
    assert 5 <= len(timing.pairs[0].candidate_us) <= 9 and len(timing.pairs[0].opponent_us) >= 5


def test_a_fast_call_gets_no_more_than_the_most():
    (timing,) = timed(bench(candidate_us=0.5)).timings(())
    assert 150 <= len(timing.pairs[0].candidate_us) <= SCREEN.max_samples + 10


def test_outputs_that_are_overwritten_only_when_timed_are_suspected():
    cheat = bench()
    cheat.late_reuse = True
    (finding,) = timed(cheat).findings()
    assert (finding.check, finding.severity) == ("reused-output", "suspect")


# ── random numbers ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("drawn_ahead", [True, False])
def test_a_fresh_process_answers_timed_calls_once_more_where_answers_follow_from_seeds(drawn_ahead):
    task = bench()
    task.facts["seeded"], task.drawn_ahead = True, drawn_ahead
    timer = timed(task)
    assert [(f.check, f.severity) for f in timer.findings()] == [("drawn-ahead", "suspect")] * drawn_ahead
    assert task.calls[CANDIDATE.id, "witness"] == 1 and not task.alive


@pytest.mark.parametrize(("seeded", "us"), [(False, 500.0), (True, 1500.0)])
def test_no_other_process_is_asked_where_nothing_follows_from_seeds_or_nothing_is_gained(seeded, us):
    task = bench(candidate_us=us)
    task.facts["seeded"], task.drawn_ahead = seeded, True
    assert timed(task).findings() == [] and (CANDIDATE.id, "witness") not in task.calls


# ── the judge's clock ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("hidden_us", "severity"),
    [(0.0, None), (40.0, None), (70.0, "note"), (110.0, "note"), (150.0, "suspect"), (2000.0, "reject")],
)
def test_work_that_the_runner_does_not_count_is_seen_by_the_judge(hidden_us, severity):
    cheat = bench()
    cheat.hidden[CANDIDATE.id] = hidden_us
    timer = timed(cheat)
    found = timer.findings()
    assert [f.severity for f in found] == ([severity] if severity else [])
    (timing,) = timer.timings(())
    counted = 500 + (hidden_us if severity else 0.0)
    assert timing.speedup == pytest.approx(1000 / counted, rel=0.03)


@pytest.mark.parametrize(
    ("between_us", "eagers_us", "severity"),
    [(200.0, 0.0, None), (400.0, 0.0, "suspect"), (2000.0, 0.0, "reject"), (400.0, 800.0, None)],
)
def test_what_is_done_between_timed_calls_is_part_of_each_in_a_row(between_us, eagers_us, severity):
    cheat = bench()
    cheat.between = {CANDIDATE.id: lambda: between_us, EAGER.id: lambda: eagers_us}
    timer = timed(cheat)
    assert [(f.check, f.severity) for f in timer.findings()] == ([("outside-work", severity)] if severity else [])
    (timing,) = timer.timings(())
    assert timing.speedup == pytest.approx(1000 / (500 + between_us if severity else 500), rel=0.05)


def test_a_clock_that_stands_still_leaves_a_figure():
    frozen = bench(candidate_us=0.0)
    frozen.between = {CANDIDATE.id: lambda: 900.0}
    timer = timed(frozen)
    (timing,) = timer.timings(())
    assert ("outside-work", "reject") in [(f.check, f.severity) for f in timer.findings()]
    assert timing.speedup == pytest.approx(1000 / 900, rel=0.05)


def test_a_row_that_others_slowed_down_is_asked_for_again_and_accuses_nobody():
    busy = bench()
    slowed = itertools.chain([5000.0], itertools.repeat(0.0))
    busy.between = {CANDIDATE.id: lambda: next(slowed)}
    timer = timed(busy)
    assert timer.findings() == [] and busy.calls[CANDIDATE.id, "back_to_back"] == 2


@pytest.mark.parametrize(("cold_us", "severity"), [(200.0, None), (100.0, "suspect"), (0.0, "suspect")])
def test_what_inputs_take_to_come_from_memory_is_no_work_between_calls(cold_us, severity):
    """400 us more in a row than the 500 of one alone, where half of these are allowed."""
    streaming = bench()
    streaming.between, streaming.cold_us = {CANDIDATE.id: lambda: 400.0}, cold_us
    assert [f.severity for f in timed(streaming).findings()] == ([severity] if severity else [])


def test_an_output_that_is_not_there_at_the_end_of_its_row_is_rejected():
    late = bench()
    late.late_in_a_row = True
    assert [(f.check, f.severity) for f in timed(late).findings()] == [("late-write", "reject")]


def test_who_is_slowed_down_as_eager_is_is_accused_of_nothing():
    """Others come between eager's row and the candidate's, and stay."""
    busy = bench()
    busy.between = {CANDIDATE.id: lambda: 400.0, EAGER.id: itertools.chain([0.0], itertools.repeat(800.0)).__next__}
    assert timed(busy).findings() == []


def test_who_is_not_faster_is_not_asked_for_calls_in_a_row():
    slow = bench(candidate_us=1000.0)
    timed(slow)
    assert (CANDIDATE.id, "back_to_back") not in slow.calls


def test_a_slow_candidate_is_suspected_and_not_rejected():
    cheat = bench(candidate_us=1500.0)
    cheat.hidden[CANDIDATE.id] = 5000.0
    timer = timed(cheat)
    assert [f.severity for f in timer.findings()] == ["suspect"]
    (timing,) = timer.timings(())
    assert timing.speedup == pytest.approx(1000 / 6500, rel=0.03)


def test_an_unsteady_machine_proves_nothing():
    shaky = bench()
    shaky.hidden[CANDIDATE.id] = 400.0
    shaky.transport_us = lambda: shaky.random.choice((40.0, 1000.0))
    assert timed(shaky).findings() == []


def test_an_unsteady_machine_excuses_no_lie_beyond_a_factor_of_two():
    shaky = bench(candidate_us=1.0)
    shaky.hidden[CANDIDATE.id] = 900.0
    shaky.transport_us = lambda: shaky.random.choice((40.0, 1000.0))
    timer = timed(shaky)
    assert [f.severity for f in timer.findings()] == ["suspect"]
    assert timer.timings(())[0].speedup < 3


def side(own: list[float], judge: list[float]) -> Side:
    return Side("x", CANDIDATE, NOBODY, samples={"call": own}, judge={"call": judge})


def test_a_busy_machine_is_not_taken_for_hidden_work():
    quiet = side([100.0] * 40, [140.0] * 40)
    busy = side([100.0] * 28 + [300.0] * 12, [140.0] * 14 + [400.0] * 14 + [900.0] * 12)
    assert busy.unseen_us("call") == quiet.unseen_us("call") == 40.0


def test_hiding_work_in_a_bare_majority_of_calls_does_not_pay():
    cheat = side([10.0] * 21 + [100.0] * 19, [140.0] * 21 + [140.0] * 19)
    assert cheat.median("call") == 10.0 and cheat.unseen_us("call") == 130.0


def test_what_another_layout_costs_to_copy_is_excused_beside_the_window_and_not_in_it():
    times, outside = {"device": [100.0] * 9}, {"device": [350.0] * 9}
    strided = Side("x", CANDIDATE, NOBODY, {"layout_us": 300.0}, times, {"device": [190.0] * 9}, outside)
    assert strided.outside_us("device") == 50.0
    assert strided.unseen_us("device") == 90.0


def test_figures_that_are_zero_or_negative_by_the_judge_stay_finite():
    pair = PairResult([side([0.0], [0.0]), side([100.0], [500.0])])
    assert pair.implied_us("call", 1) > 0 and math.isfinite(pair.log_ratio("call", 1))


@pytest.mark.parametrize(("beside_us", "severity"), [(0.0, None), (80.0, None), (200.0, "suspect"), (2000.0, "reject")])
def test_work_beside_the_timed_window_counts(beside_us, severity):
    made = bench()
    made.beside[CANDIDATE.id] = beside_us
    timer = timed(made)
    assert [f.severity for f in timer.findings() if f.check == "outside-work"] == ([severity] if severity else [])
    (timing,) = timer.timings(())
    assert timing.speedup == pytest.approx(2.0 if severity is None else 1000 / (500 + beside_us), rel=0.05)


def test_who_works_while_nothing_is_asked_is_suspected():
    made = bench()
    made.idle_s[CANDIDATE.id] = itertools.count(0.0, 0.1).__next__
    made.idle_s[EAGER.id] = itertools.count(0.0, 0.1).__next__  # nobody looks at the reference
    (finding,) = timed(made).findings()
    assert finding.check == "outside-work" and finding.severity == "suspect" and "100 ms" in finding.evidence


def test_beside_the_window_of_a_gpu_a_second_copy_of_the_outputs_is_no_work():
    made = bench()
    made.beside[CANDIDATE.id] = 200.0
    made.facts |= {"output_bytes": 200 << 20, "copy_bytes_per_us": 2e6}
    assert timed(made).findings() == []


def on_a_gpu(*, opened: int, beside: float, own: float = 300.0, clock: str = "device") -> Side:
    """A side of ten calls; beside its windows lie so many microseconds."""
    times = {"device": [own] * 10, "call": [own] * 10}
    outside = {"device": [beside] * 10, "call": [250.0] * 10}
    return Side("x", CANDIDATE, NOBODY, {}, times, times, outside, opened=opened)


@pytest.mark.parametrize(
    ("opened", "eager_opened", "beside", "eager_us", "found"),
    [
        (10, 0, 100.0, 900.0, None),
        (10, 0, 400.0, 900.0, "note"),
        (10, 0, 1000.0, 900.0, "reject"),
        (10, 0, 1000.0, 30.0, "note"),  # slower than eager by its own figure
        (4, 0, 400.0, 900.0, "reject"),
        (10, 10, 400.0, 900.0, "reject"),
        (4, 0, 400.0, 30.0, "suspect"),  # as slow, and it does not wait
    ],
)
def test_host_work_that_a_waiting_call_shows_counts_and_accuses_nobody(opened, eager_opened, beside, eager_us, found):
    eager = on_a_gpu(opened=eager_opened, beside=50.0, own=eager_us)
    pair = PairResult([on_a_gpu(opened=opened, beside=beside), eager])
    evidence = ClockEvidence([pair], 4096, 2e6)
    assert [f.severity for f in evidence.findings("device") if f.check == "outside-work"] == ([found] if found else [])
    assert evidence.doubtful("device") is (found in ("reject", "suspect"))
    implied = evidence.implied_us(pair, "device", 1)
    assert implied == pytest.approx(300.0 + beside - 50.0 if found else 300.0)


@pytest.mark.parametrize(("eager_us", "found"), [(900.0, "reject"), (30.0, "note")])
def test_what_a_waiting_call_hides_within_its_window_gains_nothing_where_it_is_the_slower_one(eager_us, found):
    ours, eager = on_a_gpu(opened=10, beside=50.0), on_a_gpu(opened=0, beside=50.0, own=eager_us)
    ours.judge = {**ours.judge, "device": [1300.0] * 10}
    evidence = ClockEvidence([PairResult([ours, eager])], 4096, 2e6)
    assert [f.severity for f in evidence.findings("device") if f.check == "clock-mismatch"] == [found]


@pytest.mark.parametrize(("jitter", "severity"), [(0.0, "reject"), (4000.0, "suspect")])
def test_a_host_without_a_free_core_is_no_attack(jitter, severity):
    """Half a dozen processes on two cores: what the runner waits for lies beside a short call, and in a long one."""
    quick = on_a_gpu(opened=0, beside=0.0, own=60.0)
    quick.outside["device"] = [2000.0 + jitter * number / 10 for number in range(10)]
    evidence = ClockEvidence([PairResult([quick, on_a_gpu(opened=0, beside=50.0, own=2600.0)])], 4096, 2e6)
    assert [f.severity for f in evidence.findings("device") if f.check == "outside-work"] == [severity]


def test_what_lies_beside_the_quick_calls_is_what_counts():
    times, beside = [10.0] * 17 + [300.0] * 3, [500.0] * 17 + [20.0] * 3
    cheat = Side("x", CANDIDATE, NOBODY, {}, {"device": times}, {"device": times}, {"device": beside})
    assert cheat.outside_us("device") == 500.0


def hidden_in_pairs(hidden_us: list[float]) -> FakeBench:
    """A candidate that hides so much in its first pairs, one after the other, and nothing later."""
    made, amounts = bench(), itertools.chain(hidden_us, itertools.repeat(0.0))
    ask = made.ask

    def asking(runner, op, *given, **fields):
        if op == "prepare" and runner.candidate.id == CANDIDATE.id:
            made.hidden[CANDIDATE.id] = next(amounts)
        return ask(runner, op, *given, **fields)

    made.ask = asking
    return made


def test_one_disturbed_pair_is_outvoted_by_two():
    timer = timed(hidden_in_pairs([200.0]))
    assert timer.findings() == [] and len(timer.pairs) == 3


@pytest.mark.parametrize(("disturbed", "accused"), [(2, False), (3, True)])
def test_a_suspicion_is_decided_by_five_pairs(disturbed, accused):
    timer = timed(hidden_in_pairs([200.0] * disturbed))
    assert bool(timer.findings()) is accused and len(timer.pairs) == 5


def test_a_proof_is_looked_at_three_times():
    timer = timed(hidden_in_pairs([5000.0] * 3))
    assert [f.severity for f in timer.findings()] == ["reject"] and len(timer.pairs) == 3


def test_what_disturbs_the_opponent_could_hide_as_much_of_the_candidate():
    made = bench()
    made.hidden[EAGER.id] = 200.0
    assert len(timed(made).pairs) == 3


def test_who_cheats_in_a_few_pairs_is_believed_in_none_of_these():
    timer = timed(hidden_in_pairs([5000.0] * 2), protocol=FINAL)
    (timing,) = timer.timings(())
    assert timer.findings() == [] and [p.log_ratio < 0 for p in timing.pairs[:3]] == [True, True, False]


def test_the_device_clock_is_held_against_what_memory_allows():
    timer = timer_for(bench())
    timer.clocks = ("device",)
    quick, eager = (
        Side(
            "x", CANDIDATE, NOBODY, {"reused": False}, {"device": [us] * 9}, {"device": [us] * 9}, {"device": [0.0] * 9}
        )
        for us in (10.0, 50.0)
    )
    timer.pairs = [PairResult([quick, eager])]
    timer._bench.facts |= {"copy_bytes_per_us": 2.9e6, "whole_us": 14.0}
    for needed_us, found in ((12.0, ["physics"]), (9.0, []), (None, [])):
        timer._bench.needed_us = lambda needed_us=needed_us: needed_us
        assert [f.check for f in timer.findings()] == found
    timer._bench.facts["whole_us"] = 10.0  # not faster than moving everything
    timer._bench.needed_us = lambda: pytest.fail("a gradient takes seconds")
    assert timer.findings() == []


def test_a_thread_for_each_call_is_left_behind():
    made = bench()
    made.left = {CANDIDATE.id: 1}
    (finding,) = timed(made).findings()
    assert (finding.check, finding.severity) == ("threads-left", "suspect")


@pytest.mark.parametrize(
    ("used_s", "found"),
    [
        ([0.0005] * 7, []),
        ([0.1, *[0.0005] * 6], []),  # once: a core that the host took away
        ([0.1], ["outside-work"]),
        ([0.1, 0.0, 0.1], ["outside-work"]),
        ([0.001] * 7, ["outside-work"]),
    ],
)
def test_what_is_stopped_does_not_work(used_s, found):
    made = bench()
    made.stolen_s = {CANDIDATE.id: used_s, EAGER.id: [1.0, 1.0]}
    assert [f.check for f in timed(made).findings()] == found


@pytest.mark.parametrize(("after", "calls", "said"), [(9, 300, False), (7, 4, False), (9, 4, True), (160, 300, True)])
def test_a_pool_that_is_made_late_is_not_taken_for_threads_left(after, calls, said):
    assert bool(observed.left_behind(1, after, calls)) is said


@pytest.mark.parametrize(("slowed", "found"), [(3.0, []), (20.0, ["busy-machine"])])
def test_a_reference_that_others_slow_down_is_no_measure(slowed, found):
    made = bench()
    made.us[EAGER.id] /= slowed  # by which it was prepared
    made.drift = {pid: slowed if pid % 2 == 0 else 1.0 for pid in range(20)}
    timer = timed(made)
    assert [f.check for f in timer.findings()] == found and len(timer.pairs) == (3 if found else 1)


def test_a_candidate_that_others_slow_down_is_not_judged_slow():
    def found(candidate: list[float]) -> list[str]:
        pair = PairResult([side(candidate, [us + 40.0 for us in candidate]), side([900.0] * 6, [940.0] * 6)])
        return [f.check for f in ClockEvidence([pair], 4096, None).findings("call")]

    assert found([2000.0] * 6) == [] and found([100.0, *[2000.0] * 5]) == ["busy-machine"]


def test_one_quick_call_of_the_reference_shows_that_others_slow_the_rest():
    def pair(eager: list[float]) -> PairResult:
        return PairResult([side([100.0] * 6, [140.0] * 6), side(eager, [us + 40.0 for us in eager])])

    def found(*pairs: PairResult) -> list[str]:
        return [f.check for f in ClockEvidence(pairs, 4096, None).findings("call")]

    slow = [9000.0] * 6
    assert found(pair(slow)) == [] and found(pair([*slow[1:], 2000.0])) == ["busy-machine"]
    assert found(pair(slow), pair(slow), pair([2000.0] * 6)) == ["busy-machine"]
    assert found(pair([2000.0] * 6), pair([2000.0] * 6), pair(slow)) == []


PART = {"name": "aten::addmm\n\x1b[31m", "calls": 1, "us": 30.0}
SEEN = {"kind": "operators", "total_us": 50.0, "parts": [PART], "outside_us": 20.0}


def profiling(above: float) -> Protocol:
    return SCREEN.model_copy(update={"profile_above": above})


def test_a_profile_is_made_once_where_somebody_asks_and_the_first_pair_is_fast_enough():
    seen = bench()
    seen.profile = SEEN
    assert timed(seen).profile is None and (CANDIDATE.id, "profile") not in seen.calls
    assert timed(seen, protocol=profiling(2.5)).profile is None and (CANDIDATE.id, "profile") not in seen.calls
    timer = timed(seen, protocol=FINAL.model_copy(update={"profile_above": 1.5}))
    assert timer.profile is not None and timer.profile.parts[0].name == "aten::addmm ?[31m"
    assert seen.calls[CANDIDATE.id, "profile"] == 1 and len(timer.pairs) >= 5
    assert timer.streams == 1 and timer.findings() == []  # streams decide nothing on a CPU


def test_a_profile_that_fails_or_is_none_changes_no_verdict():
    broken = bench()
    broken.fails[CANDIDATE.id, "profile"] = 1
    timer = timed(broken, protocol=profiling(0.0))
    assert timer.profile is None and timer.timings(())[0].speedup == pytest.approx(2.0, rel=0.02)
    assert timed(bench(), protocol=profiling(0.0)).profile is None
