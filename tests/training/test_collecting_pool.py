"""Variants are collected by several evaluators at once, each with techniques in a process beside it."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from judge_fakes import FakeEvaluator, candidate

import cuda_l1.evaluator
from cuda_l1.api import collecting_pool
from cuda_l1.api.collecting import Choice, Outcome, Source
from cuda_l1.api.collecting_pool import PooledCollection
from cuda_l1.api.lanes import on_lane
from cuda_l1.api.pool import EvaluatorPool
from cuda_l1.api.proposers import PROPOSERS
from cuda_l1.api.writing_process import WritingProcess
from cuda_l1.archive import Archive, RunDirectory
from cuda_l1.config import CollectSettings, EvaluatorSettings, SearchSettings
from cuda_l1.errors import InfrastructureError
from cuda_l1.types import Candidate, Evaluation, Record, Task

TASKS = [Task(suite="synth", name=f"task{number}", source=f"class Model: # {number}\n    pass") for number in range(6)]
SETTINGS = CollectSettings(tasks="", device="cpu", attempts=2, keep=2)
ONE = EvaluatorSettings(device="cpu")


class LaneEvaluator(FakeEvaluator):
    """Two of them are at work before either gives its first verdict."""

    opened: ClassVar[list[LaneEvaluator]] = []
    together = threading.Barrier(2, timeout=10.0)

    def __init__(self, settings: EvaluatorSettings) -> None:
        super().__init__()
        self.settings = settings
        self.opened.append(self)

    def evaluate(self, task: Task, candidate: Candidate, **given: Any) -> Evaluation:
        if not self.paid:
            self.together.wait()
        return super().evaluate(task, candidate, **given)

    def interrupt(self) -> None:
        self.together.abort()

    def close(self) -> None:
        pass


class Writer:
    """Two variants of every task, for one thread."""

    name = "techniques"
    failures: Sequence[str] = ()
    texts: ClassVar[tuple[str, ...]] = ("speed=2.0", "speed=3.0")
    closed: ClassVar[list[Any]] = []

    def __init__(self, settings: SearchSettings, lane: Any) -> None:
        self.lane = lane
        self.threads: set[int] = set()

    def close(self) -> None:
        self.closed.append(self.lane)

    def propose(self, task: Task, history: Sequence[Record], until: float) -> Candidate | None:
        self.threads.add(threading.get_ident())
        assert len(self.threads) == 1
        number = len(history)
        return candidate(f"{self.texts[number]} # {task.name}", task) if number < len(self.texts) else None


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_l1.evaluator, "Evaluator", LaneEvaluator)
    monkeypatch.setattr(collecting_pool, "WritingProcess", Writer)
    Writer.closed = []
    LaneEvaluator.opened = []
    LaneEvaluator.together.reset()


def collected(folder: Path, lanes: int = 2) -> Iterator[tuple[Choice, Outcome]]:
    source = Source("synth:0:6", "synth:0:6", TASKS, {}, {}, "MIT", [])
    places = [on_lane(ONE, (core,)) for core in range(lanes)]
    with (
        Archive.open(folder / "archive.sqlite") as archive,
        EvaluatorPool(ONE, size=lanes, places=places) as pool,
    ):
        run = RunDirectory.create(folder, SETTINGS, name="collected")
        with PooledCollection(SETTINGS, archive=archive, pool=pool, run=run, name="run") as made:
            yield from made.chosen([Choice(source, task, None) for task in TASKS])


def test_each_lane_takes_tasks_and_nothing_is_paid_for_twice(tmp_path: Path) -> None:
    found = {choice.task.sha: outcome for choice, outcome in collected(tmp_path)}
    assert {each.settings.lane for each in LaneEvaluator.opened} == {(0,), (1,)}
    assert all(each.settings.interchangeable and each.paid for each in LaneEvaluator.opened)
    assert sorted(Writer.closed) == [(0,), (1,)]
    assert sum(len(each.paid) for each in LaneEvaluator.opened) == 2 * len(TASKS)
    assert [len(found[task.sha].attempts[0].kept) for task in TASKS] == [2] * len(TASKS)
    LaneEvaluator.opened = []
    again = [outcome for _, outcome in collected(tmp_path)]
    assert all(outcome.is_known for outcome in again) and len(again) == len(TASKS)
    assert all(each.paid == [] for each in LaneEvaluator.opened)


def test_a_machine_that_fails_again_and_again_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Writer, "texts", ("fault",))
    monkeypatch.setattr("cuda_l1.search.verdicts.RETRY_PAUSE_S", 0.0)
    with pytest.raises(InfrastructureError, match="the device is gone"):
        list(collected(tmp_path))


TASK = Task(
    suite="file",
    name="two_steps",
    source="""import torch
from torch import nn

print("what a task prints is no answer")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x * 2) + 1


def get_inputs():
    return [torch.randn(4, 4)]


def get_init_inputs():
    return []
""",
)


def test_a_process_of_its_own_writes_what_techniques_write() -> None:
    settings = SearchSettings(task_sha="", device="cpu", proposers=("techniques:in_place+straight_line",))
    here = PROPOSERS["techniques"]("in_place+straight_line", settings, None)
    assert here is not None
    core = min(os.sched_getaffinity(0))
    there = WritingProcess(settings, (core,))
    try:
        first = there.propose(TASK, [], math.inf)
        assert isinstance(first, Candidate) and first == here.propose(TASK, [], math.inf)
        assert there._process is not None and os.sched_getaffinity(there._process.pid) == {core}
        there._process.kill()
        with pytest.raises(InfrastructureError, match=r"two_steps: the process that writes variants died \(exit -9\)"):
            there.propose(TASK, [], math.inf)
        assert there.propose(TASK, [], math.inf) == first
    finally:
        there.close()
    assert there._process.wait(10) == -9
