"""Evaluators at once: who takes which job, and jobs that follow from others."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pytest

import cuda_l1.evaluator
from cuda_l1.api import pool as pool_module
from cuda_l1.api.pool import EvaluatorPool, Job
from cuda_l1.config import EvaluatorSettings

SETTINGS = EvaluatorSettings(device="cpu")


class Numbered:
    """An evaluator that knows which one it is."""

    opened = 0
    closed: ClassVar[list[int]] = []

    def __init__(self, settings: EvaluatorSettings) -> None:
        self.number = Numbered.opened
        Numbered.opened += 1

    def interrupt(self) -> None:
        pass

    def close(self) -> None:
        Numbered.closed.append(self.number)


@pytest.fixture(autouse=True)
def evaluators(monkeypatch: pytest.MonkeyPatch) -> None:
    Numbered.opened, Numbered.closed = 0, []
    monkeypatch.setattr(cuda_l1.evaluator, "Evaluator", Numbered)


def job(name: str, *, is_slow: bool = False) -> Job[str]:
    """One of the task that the name begins with."""
    return Job(name, name[0], name, is_slow_to_build=is_slow)


def following(work: str, _: object) -> Sequence[Job[str]]:
    """`a` is followed by two."""
    return [job(f"{work}1", is_slow=True), job(f"{work}2")] if len(work) == 1 else []


def test_whoever_waits_long_is_told_for_what(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of six ends before it was said that more are under way than are named."""
    monkeypatch.setattr(pool_module, "QUIET_S", 0.05)
    said, enough = list[str](), threading.Event()

    def tell(line: str) -> None:
        said.append(line)
        if "more" in line:
            enough.set()

    with EvaluatorPool(SETTINGS, size=6, on_quiet=tell) as pool:
        list(pool.run([job(name) for name in "abcdef"], lambda evaluator, work: enough.wait(30.0)))
    assert re.fullmatch(
        r"still at work, \d+ s without a result: (\w, ){3}\w and [12] more", next(s for s in said if "more" in s)
    )


def test_what_follows_is_done_by_the_evaluator_that_has_the_task_open() -> None:
    """With two tasks and two evaluators each keeps its own to the end."""
    both = threading.Barrier(2, timeout=30.0)

    def do(evaluator: Any, work: str) -> int:
        both.wait()  # they go in step, so that neither is ever idle
        return int(evaluator.number)

    with EvaluatorPool(SETTINGS, size=2) as pool:
        results = {each.work: number for each, number in pool.run([job("a"), job("b")], do, following)}
    assert set(results) == {"a", "a1", "a2", "b", "b1", "b2"}
    assert results["a"] == results["a1"] == results["a2"] != results["b"] == results["b1"] == results["b2"]


def test_who_has_nothing_left_to_begin_helps() -> None:
    """What follows from the only task is shared; the idle evaluator has waited for it."""
    both = threading.Barrier(2, timeout=30.0)

    def do(evaluator: Any, work: str) -> int:
        if len(work) == 2:
            both.wait()
        return int(evaluator.number)

    with EvaluatorPool(SETTINGS, size=2) as pool:
        results = {each.work: number for each, number in pool.run([job("a")], do, following)}
    assert {results["a1"], results["a2"]} == {0, 1}


def test_what_is_slow_to_build_goes_first() -> None:
    order: list[str] = []
    with EvaluatorPool(SETTINGS, size=1) as pool:
        jobs = [job("a"), job("b1", is_slow=True), job("a2", is_slow=True)]
        for each, _ in pool.run(jobs, lambda evaluator, work: order.append(work)):
            assert each.work in order
    assert order == ["b1", "a2", "a"]


def test_what_needs_room_is_done_last_with_all_others_closed() -> None:
    """And what follows from it, in its place; a later run opens the others again."""
    both = threading.Barrier(2, timeout=30.0)

    def do(evaluator: Any, work: str) -> tuple[int, list[int]]:
        if work in ("b", "c"):
            both.wait()
        return int(evaluator.number), list(Numbered.closed)

    def then(work: str, _: object) -> Sequence[Job[str]]:
        return [Job("d1", "d", "d1", needs_room=True)] if work == "d" else []

    with EvaluatorPool(SETTINGS, size=2) as pool:
        jobs = [Job("d", "d", "d", needs_room=True), job("b"), job("c")]
        results = {each.work: found for each, found in pool.run(jobs, do, then)}
        assert list(results) in (["b", "c", "d", "d1"], ["c", "b", "d", "d1"])
        assert {results["b"][0], results["c"][0]} == {0, 1}
        assert results["d"] == results["d1"] == (0, [1])
        again = {found[0] for _, found in pool.run([job("b"), job("c")], do)}
    assert again == {0, 2} and Numbered.closed == [1, 0, 2]


@pytest.mark.parametrize("fails_in", ["do", "then"])
def test_an_exception_ends_those_who_wait(fails_in: str) -> None:
    def do(evaluator: Any, work: str) -> None:
        if fails_in == "do":
            raise ValueError("no")

    def then(work: str, result: None) -> Sequence[Job[str]]:
        raise ValueError("no")

    def results(pool: EvaluatorPool) -> Iterator[object]:
        yield from pool.run([job("a")], do, then)

    with pytest.raises(ValueError, match="no"), EvaluatorPool(SETTINGS, size=3) as pool:
        list(results(pool))
    assert not [thread for thread in threading.enumerate() if "_serve" in thread.name]
