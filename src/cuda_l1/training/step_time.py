"""Where the time of a step goes, and what is done beside the training. Without torch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

from cuda_l1.training.replies import Scored

T = TypeVar("T")
BUILD, TOTAL, WAIT = "build", "total", "wait"
"""Stages of an evaluation; `wait` is for a device that others time on."""


class StepTime:
    """The wall-clock seconds of one step after another, by what the training process did in them."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._spent: dict[str, float] = {}
        self._tokens = 0

    def begin(self) -> None:
        """A step begins."""
        self._began, self._spent, self._tokens = time.monotonic(), {"generate_s": 0.0, "wait_s": 0.0}, 0

    @contextmanager
    def doing(self, name: str) -> Iterator[None]:
        """`generate_s` or `wait_s`: what the time in the block is counted as."""
        began = time.monotonic()
        yield
        self._spent[name] += time.monotonic() - began

    def wrote(self, tokens: int) -> None:
        """So many more tokens in all processes."""
        self._tokens += tokens

    def end(self) -> dict[str, float]:
        """The figures of the step that ends; none where none has begun. What is left of its time was training."""
        if self._began is None:
            return {}
        took, spent = time.monotonic() - self._began, self._spent
        self._began = None
        speed = {"tokens_per_s": self._tokens / spent["generate_s"]} if self._tokens else {}
        rest = {"train_s": took - sum(spent.values()), "step_s": took, "wait_share": spent["wait_s"] / took}
        return {**spent, **rest, **speed}


def evaluator_seconds(scored: Iterable[Scored]) -> dict[str, float]:
    """What all evaluators together spent on the verdicts that were paid for: `build_s`, `lease_s` waiting for a device
    that others time on, and `evaluate_s` on all else, of which a part is the device's and a part the host's."""
    paid = [one.judgement for one in scored if one.judgement is not None and not one.judgement.is_known]
    stages = [judgement.record.evaluation.stage_s for judgement in paid if judgement.record is not None]
    build = sum(each.get(BUILD, 0.0) for each in stages)
    lease = sum(each.get(WAIT, 0.0) for each in stages)
    rest = sum(each.get(TOTAL, 0.0) for each in stages) - build - lease
    return {"build_s": build, "lease_s": lease, "evaluate_s": rest}


def in_background(work: Callable[[], T]) -> Callable[[], T]:
    """Begins `work` in a thread; what comes back waits for its result, or raises what it raised. A process that ends
    does not wait for it."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  raised again where the result is asked for
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future.result
