"""The proposer over a policy: batches, what is stored, who is waited for, and when it ends."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from llm_fakes import PLACE, TASK, FakePrompts, FakeReplies

from cuda_l1.config import GenerationSettings
from cuda_l1.errors import InfrastructureError, UsageError
from cuda_l1.proposers import NOT_YET, ModelProposer
from cuda_l1.proposers.policy.policy import Policy, Written
from cuda_l1.proposers.policy.proposer import PolicyProposer
from cuda_l1.types import Exemplar, Prompt, Record, Task
from waiting import eventually

WAIT_S = 20.0


class FakePolicy:
    """Writes what it is told to; the real one is in `test_policy_model.py`."""

    def __init__(self, write: Callable[[int], str | None], batch: int = 3) -> None:
        self.settings = GenerationSettings(batch=batch, seed=7)
        self.batches: list[tuple[list[Prompt], list[int]]] = []
        self.writing = threading.Event()
        self.may_end = threading.Event()
        self.may_end.set()
        self._write, self._numbers = write, itertools.count()

    def generate(
        self, prompts: Sequence[Prompt], seeds: Sequence[int], *, is_over: Callable[[], bool]
    ) -> list[Written | None]:
        self.batches.append((list(prompts), list(seeds)))
        self.writing.set()
        while not self.may_end.wait(0.005):
            if is_over():
                return [None] * len(prompts)
        said = [self._write(next(self._numbers)) for _ in prompts]
        return [None if text is None else Written(text, "stop", 10, 3) for text in said]


def proposer(policy: FakePolicy, replies: FakeReplies | None = None, **more: Any) -> PolicyProposer:
    return PolicyProposer(
        cast(Policy, policy),
        "self/final@12",
        run="a-run",
        environment_key=PLACE.key,
        prompts=more.pop("prompts", FakePrompts()),
        draw=lambda task, seed: [Exemplar(candidate_id=f"seed-{seed}", source="", language="cpp", label="", score=1.0)],
        replies=replies or FakeReplies(),
        **more,
    )


def fresh(number: int) -> str:
    return f"code {number}"


def sources(writer: PolicyProposer, count: int) -> list[str]:
    found = [writer.propose(TASK, [], math.inf) for _ in range(count)]
    return [each.source for each in found if each is not None and each is not NOT_YET]


def test_a_batch_is_written_stored_and_handed_out_before_the_next() -> None:
    policy, replies = FakePolicy(fresh), FakeReplies()
    writer = proposer(policy, replies)
    first = writer.propose(TASK, [], math.inf)
    assert first is not None and first is not NOT_YET
    (origin,) = first.origins
    assert (origin.proposer, origin.model, origin.parents) == ("policy", "self/final@12", ("seed-7",))
    assert (origin.prompt_sha, origin.cost.tokens_out) == (replies.stored[0].prompt_sha, 3)
    assert len(replies.stored) == 3 and {reply.endpoint for reply in replies.stored} == {"this machine"}
    assert sources(writer, 2) == ["1", "2"] and len(policy.batches) == 1
    assert sources(writer, 1) == ["3"] and len(policy.batches) == 2
    assert [p.exemplars for p in policy.batches[1][0]] == [(f"seed-{n}",) for n in (10, 11, 12)]
    assert isinstance(writer, ModelProposer)
    writer.close()


def test_every_reply_has_a_seed_of_its_own_which_a_resumed_run_does_not_use_again() -> None:
    class SamePrompt(FakePrompts):
        def render(self, task: Task, exemplars: Sequence[Exemplar], history: Sequence[Record]) -> Prompt:
            return Prompt(system="s", user="u", template="t@1")

    policy, replies = FakePolicy(fresh), FakeReplies()
    first = proposer(policy, replies, prompts=SamePrompt())
    sources(first, 1)
    first.close()
    again = proposer(policy, replies, prompts=SamePrompt())
    assert sources(again, 3) == ["0", "1", "2"] and len(policy.batches) == 1, "a stored reply was paid for again"
    assert sources(again, 1) == ["3"]
    seeds = [seed for _, drawn in policy.batches for seed in drawn]
    assert len(set(seeds)) == 6 and all(0 <= seed < 2**63 for seed in seeds)
    again.close()


@pytest.mark.parametrize(("key", "written"), [(PLACE.key, 0), ("", 0), ("elsewhere", 1)])
def test_replies_for_another_place_are_not_taken_up(key: str, written: int) -> None:
    replies = FakeReplies()
    first = proposer(FakePolicy(fresh, batch=1), replies)
    assert sources(first, 1) == ["0"] and replies.stored[0].environment_key == PLACE.key
    first.close()
    policy = FakePolicy(fresh, batch=1)
    again = proposer(policy, FakeReplies(replies.stored[0].model_copy(update={"environment_key": key})))
    assert sources(again, 1) == ["0"] and len(policy.batches) == written
    again.close()


def test_without_a_device_of_its_own_nothing_is_written_while_others_are_measured() -> None:
    policy = FakePolicy(fresh)
    writer = proposer(policy)
    for _ in range(7):
        assert writer.propose(TASK, [], math.inf) is not NOT_YET
        policy.writing.clear()
        time.sleep(0.01)
        assert not policy.writing.is_set()
    writer.close()


def test_with_a_device_of_its_own_the_next_batch_is_written_while_others_are_measured() -> None:
    policy = FakePolicy(fresh, batch=2)
    policy.may_end.clear()
    writer = proposer(policy, is_alone=True)
    assert writer.propose(TASK, [], math.inf) is NOT_YET
    policy.may_end.set()
    assert eventually(lambda: writer.propose(TASK, [], math.inf) is not NOT_YET)
    assert eventually(lambda: len(policy.batches) == 2), "nothing is written while a candidate waits"
    writer.close()


def test_twenty_useless_replies_in_a_row_end_it() -> None:
    replies = FakeReplies()
    writer = proposer(FakePolicy(lambda number: "code 1" if number == 0 else "hm", batch=4), replies)
    assert sources(writer, 1) == ["1"]
    assert writer.propose(TASK, [], math.inf) is None
    assert len(replies.stored) == 24 and replies.stored[1].problem == "no-code"
    assert writer.failures == ["self/final@12: 20 replies in a row held nothing new"] and writer.fault is None
    other = TASK.model_copy(update={"name": "other"})
    assert proposer(FakePolicy(fresh), replies).propose(other, [], math.inf) is not None
    writer.close()


def test_a_prompt_that_cannot_be_written_is_a_line_and_not_the_end_of_others() -> None:
    class TooLong(FakePrompts):
        def render(self, task: Task, exemplars: Sequence[Exemplar], history: Sequence[Record]) -> Prompt:
            raise UsageError("the prompt has 9000 tokens")

    writer = proposer(FakePolicy(fresh), prompts=TooLong())
    assert writer.propose(TASK, [], math.inf) is None
    assert writer.failures == ["the prompt has 9000 tokens"] and isinstance(writer.fault, UsageError)
    writer.close()


def test_what_is_not_written_in_time_is_dropped() -> None:
    policy, replies = FakePolicy(fresh), FakeReplies()
    policy.may_end.clear()
    writer = proposer(policy, replies)
    assert writer.propose(TASK, [], time.monotonic() + 0.05) is None and replies.stored == []
    assert writer.propose(TASK, [], time.monotonic() - 1) is None and len(policy.batches) == 1
    writer.close()


def test_closing_ends_what_is_being_written() -> None:
    policy = FakePolicy(fresh)
    policy.may_end.clear()
    writer = proposer(policy, is_alone=True)
    assert writer.propose(TASK, [], math.inf) is NOT_YET
    assert policy.writing.wait(WAIT_S)
    writer.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("policy")]


def test_a_fault_of_the_machine_is_the_callers() -> None:
    def broken(number: int) -> str:
        raise InfrastructureError("no memory for 3 replies")

    writer = proposer(FakePolicy(broken))
    with pytest.raises(InfrastructureError, match="no memory"):
        writer.propose(TASK, [], math.inf)
    writer.close()
