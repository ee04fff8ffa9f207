"""One verdict: looked up or paid for, and a fault of the machine never recorded."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from search_fakes import TASK, FakeEvaluator, baseline, candidate

from cuda_l1.archive import Archive
from cuda_l1.config import FINAL, SCREEN
from cuda_l1.errors import InfrastructureError
from cuda_l1.search import verdict
from cuda_l1.types import Record


@pytest.fixture
def judge(archive: Archive, evaluator: FakeEvaluator) -> Callable[..., Record]:
    def call(text: str, **given: object) -> Record:
        arguments = {"protocol": SCREEN, "archive": archive, "evaluator": evaluator, "run": "run", **given}
        return verdict(TASK, candidate(text), **arguments)  # type: ignore[arg-type]

    return call


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    seen: list[float] = []
    monkeypatch.setattr("cuda_l1.search.verdicts.time.sleep", seen.append)
    return seen


def test_a_duplicate_is_looked_up(judge: Callable[..., Record], evaluator: FakeEvaluator, archive: Archive) -> None:
    first = judge("a speed=2.0")
    assert judge("a speed=2.0", run="other") == first
    assert len(evaluator.calls) == 1
    assert archive.find(first.candidate.id, evaluator.environment.key, "screen") == first


def test_fresh_and_another_protocol_or_place_are_paid_for(
    judge: Callable[..., Record], evaluator: FakeEvaluator
) -> None:
    judge("a speed=2.0")
    again = judge("a speed=2.0", fresh=True)
    assert again.sequence == 2
    judge("a speed=2.0", protocol=FINAL)
    evaluator.environment = evaluator.environment.model_copy(update={"lane": "0-1"})
    judge("a speed=2.0")
    assert len(evaluator.calls) == 4


def test_a_record_without_the_baseline_asked_for_is_no_duplicate(
    judge: Callable[..., Record], evaluator: FakeEvaluator
) -> None:
    compiled = baseline("compile", "speed=1.5")
    judge("a speed=2.0", protocol=FINAL)
    with_baseline = judge("a speed=2.0", protocol=FINAL, baselines=[compiled], best_of=("eager", "compile"))
    assert with_baseline.evaluation.best_baseline_timing() is not None
    assert judge("a speed=2.0", protocol=FINAL, baselines=[compiled]) == with_baseline
    judge("b wrong", protocol=FINAL)
    judge("b wrong", protocol=FINAL, baselines=[compiled])
    assert len(evaluator.calls) == 3


@pytest.mark.parametrize("faults", [1, 2])
def test_a_passing_fault_of_the_machine_is_retried(
    archive: Archive, judge: Callable[..., Record], pauses: list[float], faults: int
) -> None:
    left = [InfrastructureError("driver fault")] * faults

    def fail(text: str) -> None:
        if left:
            raise left.pop()

    record = judge("a speed=2.0", evaluator=FakeEvaluator(before=fail))
    assert record.evaluation.accepted
    assert len(pauses) == faults
    assert list(archive.records()) == [record]


def test_a_lasting_fault_is_reported_and_never_recorded(
    archive: Archive, judge: Callable[..., Record], pauses: list[float]
) -> None:
    attempts = []

    def fail(text: str) -> None:
        attempts.append(text)
        raise InfrastructureError("no GPU")

    with pytest.raises(InfrastructureError, match="no GPU"):
        judge("a speed=2.0", evaluator=FakeEvaluator(before=fail))
    assert (len(attempts), len(pauses)) == (3, 2)
    assert list(archive.records()) == []
