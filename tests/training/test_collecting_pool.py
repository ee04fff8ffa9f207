"""Variants are collected by several evaluators at once; the techniques write one at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from judge_fakes import FakeEvaluator, candidate

import cuda_l1.evaluator
from cuda_l1.api import collecting_writers
from cuda_l1.api.collecting import Choice, Outcome, Source
from cuda_l1.api.collecting_pool import PooledCollection
from cuda_l1.api.lanes import on_lane
from cuda_l1.api.pool import EvaluatorPool
from cuda_l1.archive import Archive, RunDirectory
from cuda_l1.config import CollectSettings, EvaluatorSettings
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
    """Two variants of every task; alone whenever it writes."""

    name = "techniques"
    failures: Sequence[str] = ()
    texts: ClassVar[tuple[str, ...]] = ("speed=2.0", "speed=3.0")

    def __init__(self) -> None:
        self._writing = threading.Lock()

    def propose(self, task: Task, history: Sequence[Record], until: float) -> Candidate | None:
        assert self._writing.acquire(blocking=False), "two threads write at a time"
        try:
            number = len(history)
            return candidate(f"{self.texts[number]} # {task.name}", task) if number < len(self.texts) else None
        finally:
            self._writing.release()


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_l1.evaluator, "Evaluator", LaneEvaluator)
    monkeypatch.setattr(collecting_writers, "make_proposers", lambda settings, sources: [Writer()])
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
        made = PooledCollection(SETTINGS, archive=archive, pool=pool, run=run, name="run")
        yield from made.chosen([Choice(source, task, None) for task in TASKS])


def test_each_lane_takes_tasks_and_nothing_is_paid_for_twice(tmp_path: Path) -> None:
    found = {choice.task.sha: outcome for choice, outcome in collected(tmp_path)}
    assert {each.settings.lane for each in LaneEvaluator.opened} == {(0,), (1,)}
    assert all(each.settings.interchangeable and each.paid for each in LaneEvaluator.opened)
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
