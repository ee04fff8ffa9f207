"""The proposer `llm` against a real HTTP server: what is asked, kept, paid and given up."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest
from llm_fakes import PLACE, TASK, FakeReplies, judged, model, proposer

from cuda_l1.config import ModelSettings
from cuda_l1.errors import UsageError
from cuda_l1.proposers import NOT_YET, NotYet
from cuda_l1.proposers.llm import questions
from cuda_l1.proposers.llm.prices import Price
from cuda_l1.proposers.llm.proposer import LlmProposer
from cuda_l1.types import Candidate, Outcome, Record
from llm_server import Answer, Reply, Request, serving


def fresh() -> Callable[[Request], str]:
    """A candidate that was not there before, each time."""
    numbers = itertools.count()
    return lambda request: f"code {next(numbers)}"


@contextmanager
def asking(*replies: Reply, make: Callable[[str], ModelSettings] = model, **more: Any) -> Iterator[Any]:
    with serving(*replies) as server:
        found = proposer(make(server.url), **more)
        try:
            yield found, server
        finally:
            found.close()


def step(llm: LlmProposer, history: Sequence[Record] = (), until: float = math.inf) -> Candidate | None:
    """What it offers once it no longer says that it has nothing yet."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        offered = llm.propose(TASK, history, until)
        if not isinstance(offered, NotYet):
            return offered
        time.sleep(0.005)
    raise AssertionError("no answer")


def alone(url: str) -> ModelSettings:
    return model(url, concurrency=1)


def test_a_reply_becomes_a_candidate_that_says_where_it_comes_from() -> None:
    replies = FakeReplies()
    with asking("code x = 1", make=alone, replies=replies) as (llm, server):
        assert llm.propose(TASK, [], math.inf) is NOT_YET
        candidate = step(llm)
        assert candidate is not None and candidate.source == "x = 1"
        (origin,) = candidate.origins
        assert (origin.proposer, origin.model, origin.template, origin.parents) == ("llm", "m", "t@1", ("seed-0",))
        assert (candidate.label, candidate.rationale) == ("m", "a design")
        (reply,) = replies.stored
        assert (reply.candidate_id, reply.endpoint) == (candidate.id, server.url.split("/")[2])
        assert origin.prompt_sha == reply.prompt_sha and origin.cost.tokens_out == reply.cost.tokens_out == 3
        assert server.questions() == ["faster than seed-0"]


def test_several_models_are_asked_in_turn_up_to_their_concurrency() -> None:
    slow = Answer(text="code 1", delay_s=0.3, times=99)
    with serving(slow) as server:
        llm = proposer(model(server.url, "a", concurrency=2, temperature=0.2), model(server.url, "b", concurrency=3))
        llm.propose(TASK, [], math.inf)
        while server.in_flight < 5:
            time.sleep(0.005)
        assert llm.propose(TASK, [], math.inf) is NOT_YET
        llm.close()
        assert sorted(r["model"] for r in server.requests) == ["a", "a", "b", "b", "b"]
        assert {r.get("temperature") for r in server.requests if r["model"] == "a"} == {0.2}


def test_answers_that_wait_to_be_evaluated_keep_new_questions_back() -> None:
    with asking(fresh(), make=lambda url: model(url, concurrency=3)) as (llm, server):
        llm.propose(TASK, [], math.inf)
        while not all(question.future.done() for question in llm._talks[TASK.sha].open):
            time.sleep(0.005)
        for _ in range(20):
            llm._ask(llm._talks[TASK.sha], [])
        assert len(server.asked) == 3
        step(llm)
        step(llm)
        assert len(server.asked) <= 5


def test_what_a_model_thinks_is_no_answer() -> None:
    thought = Answer(text="<think>code no</think>code yes", reasoning="code never")
    replies = FakeReplies()
    with asking(thought, make=alone, replies=replies) as (llm, _):
        candidate = step(llm)
        assert candidate is not None and candidate.source == "yes"
        assert "no" not in replies.stored[0].text and "never" not in replies.stored[0].text


def test_useless_replies_are_kept_with_their_reason_and_end_at_some_point() -> None:
    replies = FakeReplies()
    said = (Answer(text="well", finish="length"), Answer(text=None, refusal="never"), "hm")
    with asking(*said, make=alone, replies=replies, repair=False) as (llm, _):
        assert step(llm) is None
    assert [reply.problem for reply in replies.stored[:3]] == ["cut-off", "refusal", "no-code"]
    assert len(replies.stored) == 20
    assert llm.failures == [f"m at {replies.stored[0].endpoint}: 20 replies in a row held nothing new"]
    assert llm.ledger.replies == 20


def test_a_model_that_repeats_itself_is_left() -> None:
    with asking("code 1", make=alone) as (llm, server):
        assert step(llm) is not None
        assert step(llm) is None
        assert len(server.asked) == 21


def test_a_failure_is_handed_back_once() -> None:
    replies = FakeReplies()
    with asking("code bad", "code worse", fresh(), make=alone, replies=replies) as (llm, server):
        bad = step(llm)
        assert bad is not None
        worse = step(llm, [judged(bad)])
        assert worse is not None and worse.source == "worse"
        assert server.questions()[1] == "repair bad: BUILD_FAILED line 3"
        assert worse.origins[0].parents == (bad.id,)
        assert replies.stored[1].repairs == replies.stored[0].id
        step(llm, [judged(bad), judged(worse)])
        assert not any("worse" in question for question in server.questions())


@pytest.mark.parametrize(("outcome", "more"), [(Outcome.REJECTED, {}), (Outcome.CRASHED, {"repair": False})])
def test_an_attack_is_never_handed_back_and_nothing_is_where_that_is_off(outcome: Outcome, more: Any) -> None:
    with asking(fresh(), make=alone, **more) as (llm, server):
        first = step(llm)
        assert first is not None
        step(llm, [judged(first, outcome)])
        assert not any("repair" in question for question in server.questions())


def test_a_reply_without_usable_code_is_handed_back_with_the_reason() -> None:
    with asking("hm", "code better", make=alone) as (llm, server):
        candidate = step(llm)
        assert candidate is not None and candidate.source == "better"
        assert server.questions()[1] == "repair hm: no-code says nothing of use"


def test_a_question_that_cannot_be_written_ends_the_asking_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with asking("code 1", "code 2", make=alone, repair=False) as (llm, server):
        found = step(llm)
        assert found is not None and llm.unfinished is None
        _too_long(llm, monkeypatch)
        assert step(llm, [judged(found)]) is None
        assert list(llm.failures) == ["too long"] and llm.unfinished == "too long" and llm.fault is None
        assert len(server.asked) == 1


def test_where_it_is_the_first_question_it_is_a_fault_of_the_person(monkeypatch: pytest.MonkeyPatch) -> None:
    with asking("code 1") as (llm, server):
        _too_long(llm, monkeypatch)
        assert step(llm) is None and server.asked == []
        assert isinstance(llm.fault, UsageError) and str(llm.fault) == "too long"


def _too_long(llm: LlmProposer, monkeypatch: pytest.MonkeyPatch) -> None:
    def render(*values: Any) -> NoReturn:
        raise UsageError("too long")

    monkeypatch.setattr(llm._prompts, "render", render)


def test_a_resumed_run_pays_nothing_twice() -> None:
    replies = FakeReplies()
    with asking("code 1", "hm", "code 2", make=alone, replies=replies) as (llm, _):
        first, second = step(llm), step(llm)
    paid = list(replies.stored)
    with asking(fresh(), make=alone, replies=replies) as (again, server):
        # Another port is another endpoint: what is stored counts all the same.
        assert [again.propose(TASK, [], 0.0), again.propose(TASK, [], 0.0)] == [first, second]
        assert server.asked == [] and replies.stored == paid
        assert again.ledger.tokens == llm.ledger.tokens > 0
        assert again.propose(TASK, [], 0.0) is None
        assert step(again) is not None
        assert server.questions() == ["faster than seed-2"]


def test_a_run_of_the_same_name_elsewhere_has_replies_of_its_own() -> None:
    replies = FakeReplies()
    with asking("code 1", make=alone, replies=replies) as (llm, _):
        step(llm)
    (paid,) = replies.stored
    assert paid.environment_key == PLACE.key
    elsewhere = FakeReplies(paid.model_copy(update={"environment_key": "elsewhere"}))
    with asking(fresh(), make=alone, replies=elsewhere) as (again, _):
        assert again.propose(TASK, [], 0.0) is None and again.ledger.tokens == 0
        assert step(again) is not None and len(elsewhere.stored) == 2


def test_a_limit_of_tokens_is_kept_and_said() -> None:
    def make(url: str) -> ModelSettings:
        return model(url, max_tokens=100, concurrency=8)

    with asking(fresh(), make=make, max_tokens=350) as (llm, server):
        while step(llm) is not None:
            pass
        assert len(server.asked) >= 3 and llm.ledger.tokens <= 350
        assert llm.failures[-1].startswith("--max-tokens 350: ")


def test_a_limit_of_money_is_kept_and_said() -> None:
    prices = {"m": Price(input=0.0, output=1e6)}
    with asking(fresh(), make=alone, max_usd=5.0, prices=prices) as (llm, _):
        assert [step(llm) is not None for _ in range(3)] == [True, True, False]  # two tokens each
        assert llm.ledger.known_usd == 4.0
        assert llm.failures[-1].startswith("--max-usd 5: ")


def test_without_a_price_the_cost_is_unknown() -> None:
    replies = FakeReplies()
    with asking(fresh(), make=alone, max_usd=0.01, replies=replies) as (llm, _):
        step(llm)
    paid = replies.stored[0]
    assert paid.cost.usd is None and llm.ledger.account(paid.model, paid.endpoint).usd is None


def test_tokens_that_no_server_counts_are_estimated() -> None:
    replies = FakeReplies()
    with asking(Answer(text="code 123456", usage="none"), make=alone, replies=replies) as (llm, _):
        step(llm)
    assert replies.stored[0].cost.tokens_out == 4 and replies.stored[0].cost.tokens_in > 0


@pytest.mark.parametrize("status", [401, 404])
def test_a_refusing_endpoint_is_asked_once(status: int) -> None:
    with asking((status, "no"), make=alone) as (llm, server):
        assert step(llm) is None
        assert len(server.asked) == 1 and llm.fault is not None
        assert llm.fault.kind == {401: "refused", 404: "unknown"}[status]
        assert f"HTTP {status}: no" in str(llm.fault) == llm.failures[0]


def test_three_faults_in_a_row_end_it_and_fewer_do_not() -> None:
    too_long = (400, "maximum context length is 10 tokens")
    with asking(too_long, too_long, "code 1", too_long, make=alone) as (llm, server):
        assert step(llm) is not None
        assert step(llm) is None
        assert len(server.asked) == 6 and llm.fault is None
        assert "maximum context length" in llm.failures[0]


DROPPED = Answer(fault="drop")


def asked_once_each(url: str) -> ModelSettings:
    return model(url, concurrency=1, retries=0)


def test_a_server_that_is_started_anew_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "PAUSE_S", 0.02)
    with asking("code 1", *[DROPPED] * 5, "code 2", make=asked_once_each) as (llm, server):
        first, second = step(llm), step(llm)
        assert first is not None and second is not None and (first.source, second.source) == ("1", "2")
        assert len(server.asked) == 7 and llm.failures == []


def test_a_server_that_stays_away_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "PAUSE_S", 0.02)
    monkeypatch.setattr(questions, "PATIENCE_S", 0.1)
    with asking("code 1", DROPPED, make=asked_once_each) as (llm, _):
        assert step(llm) is not None
        assert step(llm) is None
        assert llm.fault is None and "cannot be reached" in llm.failures[0]


def test_a_server_that_never_answered_is_not_waited_for() -> None:
    with asking(DROPPED, make=asked_once_each) as (llm, server):
        assert step(llm) is None
        assert llm.fault is not None and llm.fault.kind == "unreachable" and len(server.asked) == 1


def test_one_model_that_fails_leaves_the_other() -> None:
    with serving(Answer(model="a", status=401, error="no"), Answer(model="b", text="code 1")) as server:
        llm = proposer(model(server.url, "a"), model(server.url, "b"))
        candidate = step(llm)
        llm.close()
        assert candidate is not None and candidate.label == "b"
        assert llm.fault is None


def test_nothing_is_asked_when_the_time_is_up() -> None:
    with asking(fresh()) as (llm, server):
        assert llm.propose(TASK, [], time.monotonic() - 1) is None
        assert server.asked == []


def test_closing_does_not_wait_for_answers() -> None:
    with asking(Answer(fault="never")) as (llm, server):
        llm.propose(TASK, [], math.inf)
        while not server.in_flight:
            time.sleep(0.005)
        began = time.monotonic()
        llm.close()
        assert time.monotonic() - began < 5


@pytest.mark.parametrize("answer", ["code x = 1", "nothing"])
def test_closing_stores_what_has_come_in_and_asks_no_more(answer: str) -> None:
    replies = FakeReplies()
    with asking(answer, make=alone, replies=replies) as (llm, server):
        llm.propose(TASK, [], math.inf)
        while not all(question.future.done() for question in llm._talks[TASK.sha].open):
            time.sleep(0.005)
        llm.close()
        assert len(replies.stored) == llm.ledger.replies == len(server.asked) == 1


@pytest.mark.parametrize("answer", ["code x = 1", "nothing", "fresh"])
def test_a_limit_of_attempts_counts_every_reply_and_those_stored(answer: str) -> None:
    replies = FakeReplies()
    with serving(fresh() if answer == "fresh" else answer) as server:
        for limit in (2, 7):  # the second proposer finds the replies of the first
            llm = proposer(model(server.url), replies=replies, attempts=limit, repair=False)
            while step(llm) is not None:
                pass
            llm.close()
            assert llm.unfinished is None
            assert len(server.asked) == len(replies.stored) == limit


def test_repairs_are_attempts() -> None:
    with asking("nothing", make=alone, attempts=3) as (llm, server):
        assert step(llm) is None
        assert len(server.asked) == 3
