"""The loop over a fake evaluator and a real archive: what is chosen, what is paid, what is claimed."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from search_fakes import EAGER, FakeEvaluator, ListProposer, baseline, candidate, make_evaluation

from cuda_l1.archive import Archive
from cuda_l1.config import LlmSettings, ModelSettings, PromptSettings
from cuda_l1.errors import CandidateError, TaskError, UsageError
from cuda_l1.search import Result
from cuda_l1.search.events import BaselineDone, CandidateDone, Confirmed, Event, Started, Stopped
from cuda_l1.search.stopping import StopRules
from cuda_l1.types import Candidate, Outcome

Search = Callable[..., Result]
COMPILE = baseline("compile", "speed=1.5")


def test_the_fastest_that_may_win_is_confirmed(search: Search, evaluator: FakeEvaluator, archive: Archive) -> None:
    texts = ["a speed=2.0", "b speed=9.0 suspect", "c speed=8.0 relaxed", "d speed=7.0 device=0.5", "e wrong"]
    result = search(ListProposer(*texts, "f speed=3.0 final=2.9"), baselines=[EAGER, COMPILE])
    assert result.winner is not None and result.final is not None
    assert result.winner.candidate.source == "f speed=3.0 final=2.9"
    assert result.final.evaluation.protocol == "final"
    assert result.outcome == "beats-best-baseline"
    assert result.screen_speedup == 3.0
    assert result.shrinkage == pytest.approx(1 - 2.9 / 3.0)
    assert result.best_baseline == "compile"
    assert evaluator.asked[-1]["baselines"] == ["compile"]
    assert evaluator.asked[-1]["best_of"] == ("eager", "compile")
    assert result.versus_best_baseline is not None
    assert result.versus_best_baseline.best_of == ("eager", "compile")
    assert result.evaluations == len(evaluator.calls) == len(list(archive.records())) == 9
    assert result.stop_reason == "exhausted"
    assert Result.model_validate_json(result.model_dump_json()) == result


def test_relaxed_precision_lets_a_relaxed_candidate_win(search: Search) -> None:
    result = search(ListProposer("a speed=2.0", "c speed=8.0 relaxed"), precision="relaxed")
    assert result.winner is not None
    assert result.winner.candidate.source == "c speed=8.0 relaxed"


def test_a_winner_that_does_not_hold_gives_way_to_the_next(search: Search) -> None:
    texts = ["a speed=4.0 final=1.0", "b speed=3.0 final=1.05 half=0.2", "c speed=2.0"]
    result = search(ListProposer(*texts))
    assert result.winner is not None
    assert result.winner.candidate.source == "c speed=2.0"
    assert [record.candidate.source[0] for record in result.unconfirmed] == ["a", "b"]
    assert result.outcome == "beats-best-baseline", "eager is the best baseline here"


def test_a_suspicion_about_eagers_own_timing_makes_no_slower_baseline_the_best(search: Search) -> None:
    noisy = baseline("eager", "speed=1.0 suspect")
    result = search(ListProposer("a speed=2.0"), baselines=[noisy, baseline("compile", "speed=0.4")])
    assert result.best_baseline == "eager"


def _told(result: Result) -> list[tuple[str, float, str]]:
    return [(found.technique[0], found.screen_speedup, found.why) for found in result.not_confirmed]


def test_why_what_looked_faster_was_not_confirmed(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    def export(chosen: Candidate) -> Candidate:
        if chosen.source.startswith("a"):
            raise CandidateError("it needs a file that is not there")
        return candidate(chosen.source + " crash" * chosen.source.startswith("b"))

    result = search(ListProposer("a speed=4.0", "b speed=3.0", "c speed=2.0 final=1.0"), export=export)
    assert result.final is None
    assert _told(result) == [
        ("a", 4.0, "no drop-in can be made of it: it needs a file that is not there"),
        ("b", 3.0, "its drop-in is CRASHED: no module named x"),
        ("c", 2.0, "measured anew it is not faster by more than the interval (1.00x, 95 % 0.99 to 1)"),
    ]
    monkeypatch.setattr(StopRules, "another_final", lambda *_: False)
    assert _told(search(ListProposer("a speed=4.0", "b speed=3.0"), export=export, run="late")) == [
        ("a", 4.0, "no drop-in can be made of it: it needs a file that is not there"),
        ("b", 3.0, "no time was left to confirm it; give a longer budget"),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a speed=3.0 suspect", "it is suspect: clock-mismatch: 30 %"),
        ("a speed=3.0 relaxed", "it is of the precision class relaxed, which may not win here"),
        ("a speed=3.0 device=0.5", "it is slower on the other clock"),
    ],
)
def test_why_the_fastest_may_not_win(search: Search, text: str, why: str) -> None:
    assert _told(search(ListProposer("b speed=2.0 wrong", text, "c speed=0.5"))) == [("a", 3.0, why)]


def test_nothing_faster_is_said_plainly(search: Search, evaluator: FakeEvaluator) -> None:
    result = search(ListProposer("a speed=0.9", "b wrong"), baselines=[EAGER, COMPILE])
    assert (result.winner, result.final, result.outcome) == (None, None, "no-improvement")
    assert result.best_baseline == "compile"
    assert evaluator.finals() == []


def test_a_module_that_does_not_run_there_ends_the_search(
    search: Search, evaluator: FakeEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked again each time: what was missing may be there by now."""
    broken = baseline("eager", "crash")
    for paid in (1, 2):
        with pytest.raises(TaskError, match="the module itself is CRASHED where candidates run: no module named x"):
            search(ListProposer("a speed=2.0"), baselines=[broken, COMPILE])
        assert len(evaluator.calls) == paid
    monkeypatch.setattr("search_fakes.make_evaluation", lambda candidate, *rest: make_evaluation(EAGER, *rest))
    assert search(ListProposer("a speed=2.0"), baselines=[broken]).baselines[0].outcome == Outcome.ACCEPTED


def test_slower_than_the_best_baseline_beats_only_eager(search: Search) -> None:
    assert search(ListProposer("a speed=1.3"), baselines=[EAGER, COMPILE]).outcome == "beats-eager"


def test_eager_that_is_faster_in_the_final_than_what_screens_chose_is_the_best_baseline(search: Search) -> None:
    result = search(ListProposer("a speed=2.0"), baselines=[EAGER, COMPILE])
    assert result.final is not None and result.versus_best_baseline is not None and result.held_against == "compile"
    eager, compiled = (timing.model_copy() for timing in (result.versus_eager, result.versus_best_baseline) if timing)
    slow = eager.model_copy(update={"opponent": "compile", "best_of": compiled.best_of})
    for eagers, theirs, best in ((compiled, slow, "eager"), (slow, compiled, "compile")):
        timings = (eagers.model_copy(update={"opponent": "eager", "best_of": ()}), theirs)
        evaluation = result.final.evaluation.model_copy(update={"timings": timings})
        again = result.model_copy(update={"final": result.final.model_copy(update={"evaluation": evaluation})})
        found = again.versus_best_baseline
        assert found is not None and again.held_against == found.opponent == best
        assert found.speedup == compiled.speedup < slow.speedup


def test_a_baseline_that_fails_in_the_final_is_not_beaten(search: Search, evaluator: FakeEvaluator) -> None:
    gone = baseline("compile", "speed=1.5 absent")
    for _ in range(2):
        result = search(ListProposer("a speed=2.0"), baselines=[EAGER, gone])
        assert result.versus_best_baseline is None
        assert result.outcome == "beats-eager"
    assert len(evaluator.finals()) == 1


def test_failed_and_inexact_baselines_are_named_and_left_out(search: Search, evaluator: FakeEvaluator) -> None:
    others = [baseline("broken", "wrong"), baseline("half", "speed=5.0 relaxed"), baseline("slow", "speed=0.5")]
    result = search(ListProposer("a speed=2.0"), baselines=[EAGER, *others])
    table = [(b.name, b.outcome, b.speedup) for b in result.baselines]
    assert table == [
        ("eager", Outcome.ACCEPTED, 1.0),
        ("broken", Outcome.WRONG_VALUES, None),
        ("half", Outcome.ACCEPTED, 5.0),
        ("slow", Outcome.ACCEPTED, 0.5),
    ]
    assert result.baselines[1].detail == "output 0 differs"
    assert result.best_baseline == "eager"
    assert evaluator.asked[-1] == {
        "baselines": [],
        "best_of": ("eager", "slow"),
        "best_so_far": None,
        "budget_s": pytest.approx(60.0, abs=1.0),
    }


def test_proposers_take_turns_and_see_the_history(search: Search) -> None:
    first, second = ListProposer("a speed=1.1", "c speed=1.2"), ListProposer("b speed=1.3")
    search(first, second)
    assert first.histories[1] == ["eager", "a speed=1.1", "b speed=1.3"]
    assert second.histories == [["eager", "a speed=1.1"], ["eager", "a speed=1.1", "b speed=1.3", "c speed=1.2"]]


def test_the_best_so_far_goes_to_the_evaluator(search: Search, evaluator: FakeEvaluator) -> None:
    search(ListProposer("a speed=1.1", "b speed=2.0", "c speed=1.2"), baselines=[EAGER, COMPILE])
    assert evaluator.asked[2]["best_so_far"] is None, "that is compile; the first candidate came before it"
    assert [evaluator.asked[place]["best_so_far"] for place in (1, 3, 4)] == [1.0, 1.5, 2.0]


def test_what_would_be_the_best_is_profiled_where_prompts_show_it(search: Search, evaluator: FakeEvaluator) -> None:
    shown = LlmSettings(
        models=(ModelSettings(name="m", url="http://127.0.0.1:1/v1"),), prompt=PromptSettings(profile=True)
    )
    hidden = shown.model_copy(update={"prompt": PromptSettings()})
    search(ListProposer("a speed=1.1", "b speed=2.0", "c speed=1.2"), llm=shown, baselines=[EAGER, COMPILE])
    asked = [protocol.profile_above for protocol in evaluator.protocols]
    assert asked == [None, 0.0, None, 1.1, 2.0, None]  # baselines and the final are not for prompts
    evaluator.protocols.clear()
    search(ListProposer("d speed=1.1"), llm=hidden, run="other")
    assert {protocol.profile_above for protocol in evaluator.protocols} == {None}


def test_what_is_known_is_never_paid_for_again(search: Search, evaluator: FakeEvaluator) -> None:
    search(ListProposer("a speed=1.1", "b speed=2.0"), run="first")
    paid = len(evaluator.calls)
    events: list[Event] = []
    result = search(
        ListProposer("a speed=1.1", "a speed=1.1", "eager: speed=1.0", "b speed=2.0", "c speed=1.2"),
        run="second",
        budget_evaluations=1,
        budget_s=None,
        on_event=events.append,
    )
    assert evaluator.calls[paid:] == [("screen", "c speed=1.2"), ("final", "b speed=2.0")]
    assert (result.evaluations, result.duplicates) == (2, 4)
    assert [event.known for event in events if isinstance(event, CandidateDone)] == [True, True, False]
    assert result.winner is not None and result.winner.run == "first"
    assert result.final is not None and result.final.run == "second", "the confirmation is always measured after"


def test_a_proposer_that_only_repeats_itself_is_left(search: Search) -> None:
    class Parrot:
        name = "parrot"
        failures = ()
        asked = 0

        def propose(self, task: object, history: object, until: object) -> Candidate:
            self.asked += 1
            return candidate("a speed=1.5")

    parrot = Parrot()
    assert search(parrot, budget_s=None).stop_reason == "exhausted"
    assert parrot.asked == 21


def test_a_proposer_that_runs_out_of_time_has_not_run_out_of_ideas(search: Search) -> None:
    class Slow:
        name = "slow"
        failures = ()

        def propose(self, task: object, history: object, until: float) -> Candidate | None:
            time.sleep(max(0.0, until - time.monotonic()) + 0.05)
            return None

    assert search(Slow(), budget_s=0.3).stop_reason == "time-budget"


@pytest.mark.parametrize(
    ("given", "reason", "screens"),
    [
        ({"budget_evaluations": 3}, "evaluation-budget", 3),
        ({"patience": 4}, "no-gain", 5),
        ({"roofline_us": 99.0}, "roofline", 1),
        ({"patience": 99}, "exhausted", 30),
    ],
)
def test_each_rule_stops_the_search(
    search: Search, evaluator: FakeEvaluator, given: dict[str, float], reason: str, screens: int
) -> None:
    texts = ["first speed=1.5"] + [f"number {n} speed=1.5" for n in range(29)]
    assert search(ListProposer(*texts), budget_s=None, **given).stop_reason == reason
    assert len(evaluator.screens()) == screens


def test_the_artefact_is_what_the_final_measures(search: Search, evaluator: FakeEvaluator) -> None:
    def export(chosen: Candidate) -> Candidate:
        if chosen.source.startswith("a"):
            raise CandidateError("a: needs a file that is not there")
        return candidate("guarded " + chosen.source)

    events: list[Event] = []
    result = search(ListProposer("a speed=4.0", "b speed=3.0 final=2.0"), export=export, on_event=events.append)
    assert result.winner is not None and result.final is not None
    assert result.winner.candidate.source == "b speed=3.0 final=2.0"
    assert result.final.candidate.source == "guarded b speed=3.0 final=2.0"
    assert evaluator.finals() == ["guarded b speed=3.0 final=2.0"]
    assert next(event.detail for event in events if isinstance(event, Confirmed)).startswith("a: needs a file")


def test_events_tell_the_story(search: Search) -> None:
    events: list[Event] = []
    search(ListProposer("a speed=2.0", "b wrong"), on_event=events.append)
    told = [event for event in events if isinstance(event, (Started, BaselineDone, CandidateDone, Stopped, Confirmed))]
    kinds = [type(event).__name__ for event in told]
    assert kinds == ["Started", "BaselineDone", "CandidateDone", "CandidateDone", "Stopped", "Confirmed"]
    wrong = told[3]
    assert isinstance(wrong, CandidateDone)
    assert (wrong.outcome, wrong.speedup, wrong.best_so_far) == (Outcome.WRONG_VALUES, None, 2.0)


def test_what_there_is_no_time_to_judge_is_no_verdict(
    search: Search, evaluator: FakeEvaluator, archive: Archive
) -> None:
    slow = [baseline("compile", "speed=1.2 takes=600"), baseline("cuda-graph", "speed=1.1")]
    events: list[Event] = []
    proposer = ListProposer("a speed=2.0", "b speed=3.0 takes=600", "c speed=2.5")
    result = search(proposer, baselines=[EAGER, *slow], budget_s=60.0, on_event=events.append)
    measured = {found.name: found.outcome for found in result.baselines}
    assert measured == {"eager": Outcome.ACCEPTED, "compile": None, "cuda-graph": Outcome.ACCEPTED}
    assert next(found.detail for found in result.baselines if found.name == "compile").startswith(
        "not measured: given up"
    )
    told = [event for event in events if isinstance(event, CandidateDone)]
    assert [event.outcome for event in told] == [Outcome.ACCEPTED, None, Outcome.ACCEPTED]
    assert result.winner is not None and "c speed=2.5" in result.winner.candidate.source
    assert not [text for _, text in evaluator.calls if "takes" in text]
    again = search(ListProposer("b speed=3.0 takes=600"), baselines=[EAGER], budget_s=1200.0)
    assert again.winner is not None and "takes" in again.winner.candidate.source, "with more time it is judged"


@pytest.mark.parametrize("given", [{"budget_s": 0.0}, {"budget_evaluations": 0}])
def test_a_budget_of_zero_is_the_users_mistake(search: Search, given: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="nothing fits into it"):
        search(ListProposer(), **given)
