"""Many verdicts at once: paid for once, on every evaluator, and a fault of the machine is no verdict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from judge_fakes import PLACE, TASKS, FakeEvaluator, candidate

from cuda_l1.archive import Archive
from cuda_l1.search import verdicts
from cuda_l1.training.judging import Asked, Judging, Waiting


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive.open(tmp_path / "archive.sqlite") as opened:
        yield opened


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "RETRY_PAUSE_S", 0.0)


def judging(archive: Archive, *evaluators: FakeEvaluator, within_s: float = 30.0) -> Judging:
    return Judging(evaluators, archive=archive, run="run", within_s=within_s)


def asked(*texts: str) -> list[Asked]:
    return [Asked(TASKS[0], candidate(text)) for text in texts]


def test_answers_come_in_order_and_the_same_text_is_paid_for_once(archive: Archive) -> None:
    first, second = FakeEvaluator(), FakeEvaluator()
    judge = judging(archive, first, second)
    found = judge(asked("speed=2.0", "wrong", "speed=2.0", "speed=3.0"))
    outcomes = [answer.record.evaluation.outcome for answer in found if answer.record]
    assert outcomes == ["ACCEPTED", "WRONG_VALUES", "ACCEPTED", "ACCEPTED"]
    assert [answer.is_known for answer in found] == [False, False, True, False]
    assert sorted(first.paid + second.paid) == ["speed=2.0", "speed=3.0", "wrong"]
    again = judge(asked("speed=3.0", "wrong"))
    assert all(answer.is_known for answer in again)
    assert len(first.paid + second.paid) == 3
    assert judge.place == PLACE.key


def test_a_success_can_be_shown_at_once_and_is_the_mark_for_those_that_follow(archive: Archive) -> None:
    evaluator = FakeEvaluator()
    judge = judging(archive, evaluator)
    judge(asked("speed=2.0", "wrong"))
    assert archive.exemplars.count(TASKS[0].sha, PLACE.key) == 1
    judge(asked("speed=3.0"))
    assert evaluator.best_so_far[-1] == pytest.approx(2.0)


def test_a_fault_of_the_machine_is_no_verdict_and_is_asked_for_again(archive: Archive) -> None:
    evaluator = FakeEvaluator()
    judge = judging(archive, evaluator)
    fault, right = judge(asked("fault", "speed=2.0"))
    assert fault.record is None and fault.fault == "the device is gone" and right.record is not None
    assert evaluator.paid.count("fault") == verdicts.ATTEMPTS
    (again,) = judge(asked("fault"))
    assert again.record is None and not again.is_known


def test_what_takes_too_long_is_a_fault_and_its_evaluator_is_left_alone_until_it_is_done(archive: Archive) -> None:
    evaluator = FakeEvaluator()
    evaluator.slow_s = 60.0
    judge = judging(archive, evaluator, within_s=0.2)
    found = judge(asked("slow speed=1.0", "speed=2.0"))
    assert not evaluator.answered, "nobody waited for it"
    evaluator.release.set()
    assert all(answer.record is None and "0 s" in answer.fault for answer in found)
    waiting = judging(archive, evaluator, within_s=30.0)
    waiting._free = judge._free  # the same evaluators, with more patience
    (late,) = waiting(asked("slow speed=1.0"))
    assert late.record is not None


def test_nothing_asked_is_nothing_answered(archive: Archive) -> None:
    assert judging(archive, FakeEvaluator())([]) == []


def test_an_evaluator_keeps_to_a_task_and_helps_where_most_is_left() -> None:
    texts = [("a", 0), ("b", 0), ("c", 0), ("d", 1), ("e", 2), ("f", 2)]
    waiting = Waiting([Asked(TASKS[number], candidate(text, TASKS[number])) for text, number in texts])

    def take(last: int | None) -> str | None:
        found = waiting.take(None if last is None else TASKS[last].sha)
        return found.candidate.source if found else None

    assert [take(None), take(None), take(0)] == ["a", "d", "b"], "another begins another task"
    assert [take(1), take(1), take(1)] == ["e", "c", "f"], "nothing is new any more, and one is left of each"
    assert take(2) is None


def test_replies_about_one_task_are_judged_one_after_the_other(archive: Archive) -> None:
    evaluator = FakeEvaluator()
    texts = [("a", 0), ("b", 1), ("c", 0), ("d", 2), ("e", 1)]
    judging(archive, evaluator)([Asked(TASKS[number], candidate(text, TASKS[number])) for text, number in texts])
    assert evaluator.paid == ["a", "c", "b", "e", "d"]
