"""A second opinion in a search: when it is asked for, what it changes, and what it must not."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from search_fakes import EAGER, TASK, FakeEvaluator, ListProposer, baseline, candidate, make_evaluation

from cuda_l1 import scoring
from cuda_l1.archive import Archive
from cuda_l1.search import Result
from cuda_l1.search.events import Event, Reviewed
from cuda_l1.search.review import Reviews
from cuda_l1.types import Candidate, Evaluation, Finding, HackCase, Outcome, Record, Task
from fake_reviewer import FakeReviewer

Search = Callable[..., Result]


def findings(record_evaluation: Evaluation) -> list[tuple[str, str]]:
    return [(f.check, f.severity) for f in record_evaluation.findings]


def test_only_jumps_are_reviewed(search: Search) -> None:
    reviewer = FakeReviewer()
    result = search(
        ListProposer("a speed=1.9", "b speed=2.0", "c speed=4.0", "d speed=10", "e speed=80 wrong", "f speed=19"),
        reviewer=reviewer,
        baselines=[EAGER, baseline("compile", "speed=1.2")],
    )
    assert reviewer.asked[:2] == ["c speed=4.0", "d speed=10"]
    assert reviewer.jumps[1] == "10.00x against eager is 2.5 times the best before it (4.00x)"
    assert result.winner is not None and result.winner.candidate.source == "f speed=19"
    assert findings(result.winner.evaluation) == []
    assert result.final is not None and findings(result.final.evaluation) == [("review", "note")]
    assert reviewer.asked[2:] == ["f speed=19"], "a winner that came in small steps is read before it is handed out"
    assert reviewer.jumps[2] == "19.00x against eager is 15.8 times the best before it (1.20x)"


def test_what_is_faster_than_its_bytes_allow_is_reviewed(search: Search) -> None:
    reviewer = FakeReviewer()
    result = search(ListProposer("a cheat speed=1.5"), reviewer=reviewer, roofline_us=1e6)
    assert reviewer.asked == ["a cheat speed=1.5"] and "moving its inputs and outputs" in reviewer.jumps[0]
    assert result.winner is None


def test_a_winner_is_read_once(search: Search) -> None:
    reviewer = FakeReviewer()
    result = search(ListProposer("a speed=3"), reviewer=reviewer)
    assert reviewer.asked == ["a speed=3"]
    assert result.final is not None and findings(result.final.evaluation) == []


def test_a_final_that_is_suspected_is_not_handed_out(search: Search) -> None:
    reviewer = FakeReviewer()
    result = search(ListProposer("b speed=1.2", "a cheat speed=1.9 final=9"), reviewer=reviewer)
    assert reviewer.asked == ["a cheat speed=1.9 final=9"]
    assert result.winner is not None and result.winner.candidate.source == "b speed=1.2"
    assert [r.candidate.source for r in result.unconfirmed] == ["a cheat speed=1.9 final=9"]


def test_a_suspicion_keeps_a_candidate_from_winning(search: Search, archive: Archive, evaluator: FakeEvaluator) -> None:
    events: list[Event] = []
    proposed = ["cheat speed=50", "honest speed=1.5"]
    result = search(ListProposer(*proposed), reviewer=FakeReviewer(), on_event=events.append)
    assert result.winner is not None and result.winner.candidate.source == "honest speed=1.5"
    assert evaluator.finals() == ["honest speed=1.5"]
    first, second = (r for r in archive.records() if "cheat" in r.candidate.source)
    assert findings(first.evaluation) == [] and findings(second.evaluation) == [("review", "suspect")]
    assert second.evaluation.outcome is Outcome.ACCEPTED and scoring.reward(second.evaluation) == 1.0
    assert second.evaluation.timings == first.evaluation.timings
    assert [e.finding.check for e in events if isinstance(e, Reviewed) and e.finding] == ["review"]
    # Known from now on, also to a search without a reviewer.
    again = search(ListProposer(*proposed), run="another")
    assert again.winner is not None and again.winner.candidate.source == "honest speed=1.5"


def test_no_objection_and_no_opinion_change_nothing_but_the_record(search: Search, archive: Archive) -> None:
    plain = search(ListProposer("a speed=3", "riddle speed=7"), run="plain", budget_evaluations=2, budget_s=None)
    reviewer = FakeReviewer()
    again = search(ListProposer("a speed=3", "riddle speed=7"), run="reviewed", reviewer=reviewer)
    assert reviewer.asked[:2] == ["a speed=3", "riddle speed=7"], "known verdicts get an opinion, too"
    assert again.winner is not None and plain.winner is not None
    assert again.winner.candidate == plain.winner.candidate
    assert findings(again.winner.evaluation) == [("no-opinion", "note")]
    assert again.winner.run == "plain", "an opinion is no evaluation of this run"
    kept = {r.candidate.source: r for r in archive.records(run="plain", protocol="screen")}
    assert findings(kept["a speed=3"].evaluation) == [("review", "note")]


def test_an_opinion_is_asked_for_once_and_its_lack_again(search: Search, archive: Archive) -> None:
    proposed = ["a speed=3", "riddle speed=7"]
    search(ListProposer(*proposed), reviewer=FakeReviewer())
    count = len(list(archive.records(protocol="screen")))
    reviewer = FakeReviewer()
    search(ListProposer(*proposed), reviewer=reviewer)
    assert set(reviewer.asked) == {"riddle speed=7"}
    assert len(list(archive.records(protocol="screen"))) == count, "the same lack is not recorded twice"


def test_what_is_suspected_already_is_not_asked_about(search: Search) -> None:
    reviewer = FakeReviewer()
    result = search(ListProposer("a speed=50 suspect", "b speed=30 relaxed"), reviewer=reviewer)
    assert reviewer.asked == [] and result.winner is None


def test_without_a_reviewer_the_first_jump_says_so(search: Search) -> None:
    events: list[Event] = []
    search(ListProposer("a speed=3", "b speed=7", writer="llm"), on_event=events.append)
    told = [event for event in events if isinstance(event, Reviewed)]
    assert [(event.label, event.finding) for event in told] == [("a speed=3", None)]
    assert "3.00x against eager" in told[0].jump


def test_without_a_reviewer_nothing_is_said_of_what_our_techniques_wrote(search: Search) -> None:
    events: list[Event] = []
    search(ListProposer("a speed=3", "b speed=7"), on_event=events.append)
    assert not any(isinstance(event, Reviewed) for event in events)


def test_the_reviewer_is_shown_the_most_similar_cases(search: Search, archive: Archive) -> None:
    archive.hacks.add(HackCase(name=name, source=name, why="x") for name in ("cheat_fast", "other", "third", "fourth"))
    reviewer = FakeReviewer()
    search(ListProposer("cheat_fast speed=3"), reviewer=reviewer)
    assert len(reviewer.cases[0]) == 3 and reviewer.cases[0][0] == "cheat_fast"


def test_an_opinion_takes_no_more_than_the_budget_can_spare(search: Search) -> None:
    reviewer = FakeReviewer(takes_s=0.3)
    search(ListProposer("a speed=3"), reviewer=reviewer, budget_s=30.0)
    search(ListProposer("b speed=9"), reviewer=reviewer, budget_s=0.2, started=time.monotonic())
    search(ListProposer("c speed=20"), reviewer=reviewer, budget_s=None, budget_evaluations=3)
    assert reviewer.within_s[0] is not None and 10 < reviewer.within_s[0] <= 15
    assert reviewer.within_s[1] == 10
    assert reviewer.within_s[2] == float("inf")


def test_an_interruption_while_it_is_asked_loses_nothing(
    search: Search, archive: Archive, evaluator: FakeEvaluator
) -> None:
    class Interrupting(FakeReviewer):
        def review(self, *args: object, **more: object) -> Finding:  # type: ignore[override]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(ListProposer("cheat speed=50"), reviewer=Interrupting())
    assert evaluator.screens() == ["cheat speed=50"]
    reviewer = FakeReviewer()
    assert search(ListProposer("cheat speed=50"), reviewer=reviewer).winner is None
    assert reviewer.asked == ["cheat speed=50"] and evaluator.screens() == ["cheat speed=50"]


def test_a_rejected_candidate_becomes_a_case(search: Search, archive: Archive, evaluator: FakeEvaluator) -> None:
    found = Finding(check="late-write", severity="reject", evidence="changed after the call")
    evaluate = evaluator.evaluate

    def reject(task: Task, given: Candidate, **more: object) -> Evaluation:
        evaluation = evaluate(task, given, **more)  # type: ignore[arg-type]
        if "late" not in given.source:
            return evaluation
        return evaluation.model_copy(update={"outcome": Outcome.REJECTED, "findings": (found,)})

    evaluator.evaluate = reject  # type: ignore[method-assign, assignment]
    search(ListProposer("late speed=50", "b wrong"))
    (case,) = archive.hacks.all()
    assert (case.source, case.why) == ("late speed=50", "late-write: changed after the call")
    assert case.reference == TASK.source and case.name == f"builtin/toy/{candidate('late speed=50').id[:8]}"


@pytest.mark.parametrize(
    ("text", "before", "roofline_us", "says"),
    [
        ("speed=2.0", None, None, "2.00x against eager is 2.0 times the best before it (1.00x)"),
        ("speed=2.0", 0.5, None, "2.0 times the best before it (1.00x)"),
        ("speed=1.99", None, None, None),
        ("speed=3.0", 1.6, None, None),
        ("speed=0.5", None, 1e9, None),
        ("speed=1.5 suspect", None, 1e9, None),
        ("speed=9 device=0.5", None, None, None),
        ("wrong", None, 1e9, None),
        ("speed=1.5", 1.4, 1e9, "is less than moving its inputs and outputs takes"),
        ("speed=1.5", 1.4, 1e-9, None),
    ],
)
def test_what_a_jump_is(text: str, before: float | None, roofline_us: float | None, says: str | None) -> None:
    jump = scoring.jump(make_evaluation(candidate(text), "screen"), before, roofline_us=roofline_us)
    assert (jump is None) == (says is None)
    assert says is None or (jump and says in jump)


def test_a_reviewer_adds_a_finding_and_nothing_else(archive: Archive) -> None:
    judged = make_evaluation(candidate("cheat speed=50"), "screen")
    noted = judged.model_copy(update={"findings": (Finding(check="thread", severity="note", evidence="line 1"),)})
    record = Record(run="run", sequence=1, candidate=candidate("cheat speed=50"), evaluation=noted)
    archive.append(record, TASK)
    reviewed = Reviews(FakeReviewer(), archive, lambda event: None).of(record, TASK, best_before=None)
    assert findings(reviewed.evaluation) == [("thread", "note"), ("review", "suspect")]
    assert reviewed.evaluation.model_copy(update={"findings": noted.findings}) == noted
    assert archive.find(record.candidate.id, noted.environment.key, "screen") == reviewed
