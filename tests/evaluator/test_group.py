"""What a stopped process has had of the cores."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from cuda_l1.evaluator.guest import group
from cuda_l1.evaluator.guest.group import HALT_S, Turns
from waiting import eventually


@pytest.fixture
def sleeper() -> Iterator[int]:
    """A process below this one that wakes up now and then."""
    with subprocess.Popen([sys.executable, "-c", "import time\nwhile True: time.sleep(0.001)"]) as process:
        yield process.pid
        process.kill()


def test_who_is_stopped_gets_no_turn_and_who_goes_on_does(sleeper: int) -> None:
    assert eventually(lambda: group.turns_of_each(os.getpid())[sleeper].number > 3)
    os.kill(sleeper, signal.SIGSTOP)
    assert eventually(lambda: group.state_of(sleeper) == "T")
    then = group.turns_of_each(os.getpid())[sleeper]
    assert not eventually(lambda: group.turns_of_each(os.getpid())[sleeper].has_run_since(then), 0.05)
    os.kill(sleeper, signal.SIGCONT)
    assert eventually(lambda: group.turns_of_each(os.getpid())[sleeper].has_run_since(then))


@pytest.mark.parametrize(
    ("now", "has_run"),
    [
        (Turns(7, 1.0), False),
        (Turns(8, 1.0 + 0.5 * HALT_S), False),
        (Turns(8, 1.0 + 3.0 * HALT_S), True),
        (Turns(9, 1.0 + 0.5 * HALT_S), True),
        (Turns(1, 0.0), True),
    ],
)
def test_a_turn_in_which_a_process_comes_to_a_halt_is_none(now: Turns, has_run: bool) -> None:
    assert now.has_run_since(Turns(7, 1.0)) == has_run


def test_where_turns_are_not_counted_nobody_has_run() -> None:
    assert not Turns(0, 0.0).has_run_since(Turns(0, 0.0))
