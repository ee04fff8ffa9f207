"""Who has nothing yet keeps nobody waiting."""

from __future__ import annotations

import contextlib
import math
import signal
import time
from collections.abc import Sequence

import pytest
from search_fakes import TASK, ListProposer, candidate

from cuda_l1 import interruption
from cuda_l1.proposers import NOT_YET, NotYet
from cuda_l1.search.schedule import Schedule
from cuda_l1.types import Candidate, Record, Task


class Scripted:
    """Says what it is told to, in order; then that there is nothing more."""

    name, failures = "scripted", ()

    def __init__(self, *says: Candidate | NotYet) -> None:
        self.says = list(says)

    def propose(self, task: Task, history: Sequence[Record], until: float) -> Candidate | NotYet | None:
        return self.says.pop(0) if self.says else None


def offers(*proposers: Scripted | ListProposer, until: float = math.inf) -> list[str]:
    schedule = Schedule(TASK, proposers)
    found = []
    while (offered := schedule.propose([], until)) is not None:
        found.append(offered.source)
    return found


def test_others_go_on_while_one_waits() -> None:
    slow = Scripted(NOT_YET, NOT_YET, candidate("late"))
    assert offers(slow, ListProposer("a", "b", "c")) == ["a", "b", "late", "c"]


def test_where_all_wait_it_is_waited() -> None:
    assert offers(Scripted(*[NOT_YET] * 3, candidate("x")), Scripted(*[NOT_YET] * 5, candidate("y"))) == ["x", "y"]


def test_waiting_ends_with_the_time() -> None:
    class Never(Scripted):
        def propose(self, task: Task, history: Sequence[Record], until: float) -> NotYet:
            return NOT_YET

    began = time.monotonic()
    assert offers(Never(), until=began + 0.1) == []
    assert time.monotonic() >= began + 0.1


def test_who_does_not_wait_gets_what_is_there() -> None:
    schedule = Schedule(TASK, [Scripted(NOT_YET, candidate("late")), Scripted(NOT_YET, NOT_YET)])
    assert schedule.propose([], math.inf, waits=False) is None
    late = schedule.propose([], math.inf, waits=False)
    assert late is not None and late.source == "late"


def test_an_interruption_that_a_proposer_swallows_is_no_lack_of_ideas() -> None:
    class Swallows(Scripted):
        def propose(self, task: Task, history: Sequence[Record], until: float) -> None:
            with contextlib.suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt), interruption.remembered():
        Schedule(TASK, [Swallows()]).propose([], math.inf)


def test_one_that_leaves_leaves_the_others() -> None:
    assert offers(Scripted(), Scripted(NOT_YET, candidate("x")), Scripted(NOT_YET)) == ["x"]
