"""A table of verdicts that runs share: nothing is measured twice, and no run sees another's variants."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from judge_fakes import PLACE, TASKS, FakeEvaluator, candidate, evaluation

from cuda_l1.api.training import table_of
from cuda_l1.archive import Archive
from cuda_l1.errors import UsageError
from cuda_l1.training.judging import Asked, Judgement, Judging
from cuda_l1.training.recipe import recipe_from
from cuda_l1.training.replies import Scored, figures
from cuda_l1.training.run_directory import RunDirectory
from cuda_l1.training.table import Table
from cuda_l1.types import Candidate, Environment, Evaluation, Task


@contextmanager
def judging(folder: Path, run: str, evaluator: FakeEvaluator) -> Iterator[tuple[Judging, Archive]]:
    """The judge of a run with an archive of its own and the table that all share."""
    with Archive.open(folder / f"{run}.sqlite") as archive, Table.open(str(folder / "table.sqlite")) as table:
        yield Judging([evaluator], archive=archive, run=run, within_s=30.0, table=table), archive


def asked(*texts: str) -> list[Asked]:
    return [Asked(TASKS[0], candidate(text)) for text in texts]


def answers(found: list[Judgement]) -> list[str]:
    return ["known" if one.is_known else "table" if one.is_tabulated else "paid" for one in found]


def test_what_one_run_has_measured_another_looks_up_when_it_writes_it_itself(tmp_path: Path) -> None:
    first, second = FakeEvaluator(), FakeEvaluator()
    with judging(tmp_path, "a", first) as (judge, _):
        assert answers(judge(asked("speed=2.0", "wrong", "speed=3.0", "speed=2.0"))) == ["paid"] * 3 + ["known"]
    with judging(tmp_path, "b", second) as (judge, archive):
        assert archive.exemplars.count(TASKS[0].sha, PLACE.key) == 0, "another run's variants are in this run's archive"
        found = judge(asked("speed=2.0", "wrong", "speed=5.0", "speed=2.0"))
        assert answers(found) == ["table", "table", "paid", "known"]
        assert {record.candidate.source for record in archive.records()} == {"speed=2.0", "wrong", "speed=5.0"}
        assert {record.run for record in archive.records()} == {"b"}
        assert archive.exemplars.count(TASKS[0].sha, PLACE.key) == 2
        assert second.best_so_far == [pytest.approx(2.0)], "the mark is the best of the run's own history"
        assert answers(judge(asked("speed=2.0", "wrong"))) == ["known", "known"]
    assert first.paid == ["speed=2.0", "wrong", "speed=3.0"] and second.paid == ["speed=5.0"]
    with judging(tmp_path, "a", first) as (judge, archive):
        assert archive.exemplars.count(TASKS[0].sha, PLACE.key) == 2
        assert answers(judge(asked("speed=5.0"))) == ["table"]
        shares = figures([], [Scored(1.0, judgement=one) for one in judge(asked("speed=5.0", "speed=9.0"))])
    assert (shares["known_verdicts"], shares["table_hits"]) == (0.5, 0.0)


def test_the_verdict_is_the_one_that_was_measured_of_the_text_as_this_run_wrote_it(tmp_path: Path) -> None:
    with judging(tmp_path, "a", FakeEvaluator()) as (judge, _):
        (paid,) = judge(asked("speed=2.0"))
    with judging(tmp_path, "b", FakeEvaluator()) as (judge, _):
        own = candidate("speed=2.0").model_copy(update={"rationale": "of this run"})
        (found,) = judge([Asked(TASKS[0], own)])
    assert paid.record and found.record and found.is_tabulated
    assert found.record.evaluation == paid.record.evaluation and found.record.candidate == own


def test_a_verdict_of_another_machine_or_task_is_none(tmp_path: Path) -> None:
    class Elsewhere(FakeEvaluator):
        def __init__(self) -> None:
            super().__init__()
            self.environment = Environment(device="cpu", device_name="Other CPU", lane="0", rung="R1", torch="2.13.0")

        def evaluate(self, task: Task, candidate: Candidate, **more: Any) -> Evaluation:
            self.paid.append(candidate.source)
            return evaluation(candidate).model_copy(update={"environment": self.environment})

    with judging(tmp_path, "a", FakeEvaluator()) as (judge, _):
        judge(asked("speed=2.0"))
        assert answers(judge([Asked(TASKS[1], candidate("speed=2.0", TASKS[1]))])) == ["paid"]
    with judging(tmp_path, "b", Elsewhere()) as (judge, _):
        assert answers(judge(asked("speed=2.0"))) == ["paid"]


def test_a_fault_of_the_machine_is_not_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuda_l1.search.verdicts.RETRY_PAUSE_S", 0.0)
    for run in ("a", "b"):
        with judging(tmp_path, run, FakeEvaluator()) as (judge, archive):
            (found,) = judge(asked("fault"))
            assert found.fault == "the device is gone" and not list(archive.records())


def _many(folder: Path, run: str, paid: Any) -> None:
    evaluator = FakeEvaluator()
    with judging(folder, run, evaluator) as (judge, _):
        judge(asked(*(f"slow speed={number}.5" for number in range(1, 3)), *(f"speed={n}.0" for n in range(1, 9))))
    paid.put((run, evaluator.paid))


def test_processes_that_want_the_same_at_the_same_time_measure_it_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    paid = context.Queue()
    workers = [context.Process(target=_many, args=(tmp_path, run, paid)) for run in "ab"]
    for worker in workers:
        worker.start()
    found = dict(paid.get(timeout=60) for _ in workers)
    for worker in workers:
        worker.join()
    assert len([text for texts in found.values() for text in texts]) == 10, found
    for run in "ab":
        with Archive.open(tmp_path / f"{run}.sqlite") as archive:
            assert len(list(archive.records())) == 10


def _hangs(folder: Path) -> None:
    class Hangs(FakeEvaluator):
        def evaluate(self, task: Task, candidate: Candidate, **more: Any) -> Evaluation:
            (folder / "begun").touch()
            time.sleep(600)
            raise AssertionError

    with judging(folder, "hangs", Hangs()) as (judge, _):
        judge(asked("speed=2.0"))


def test_what_a_killed_process_was_measuring_can_be_measured(tmp_path: Path) -> None:
    worker = multiprocessing.get_context("spawn").Process(target=_hangs, args=(tmp_path,))
    worker.start()
    until = time.monotonic() + 60
    while not (tmp_path / "begun").exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    assert worker.pid
    os.kill(worker.pid, signal.SIGKILL)
    worker.join()
    with judging(tmp_path, "b", FakeEvaluator()) as (judge, _):
        assert answers(judge(asked("speed=2.0"))) == ["paid"]


@pytest.mark.parametrize(
    ("table", "said"),
    [("postgresql://x/y", "give a file"), ("RUN/archive.sqlite", "that is the run's own archive")],
)
def test_what_cannot_be_a_table_is_one_line(tmp_path: Path, table: str, said: str) -> None:
    table = table.replace("RUN", str(tmp_path))
    recipe = recipe_from({"run_dir": str(tmp_path), "evaluation": {"table": table}}, "a test")
    with pytest.raises(UsageError, match=said), table_of(RunDirectory(tmp_path, recipe)):
        raise AssertionError


def test_without_a_table_there_is_none(tmp_path: Path) -> None:
    with table_of(RunDirectory(tmp_path, recipe_from({"run_dir": str(tmp_path)}, "a test"))) as table:
        assert table is None
