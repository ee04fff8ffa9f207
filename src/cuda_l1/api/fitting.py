"""Whether a task fits the device, and what is done where it does not: `--max-gib` scales it, else it is skipped."""

from __future__ import annotations

from typing import NamedTuple

from cuda_l1.api.bench_run import BenchRun
from cuda_l1.api.pool import available_bytes
from cuda_l1.config import BenchSettings
from cuda_l1.evaluator import Evaluator
from cuda_l1.tasks.fitting import fetches_a_model, missing_modules, scaled_to
from cuda_l1.types import Task

OF_A_VERDICT = 6
"""So many times what one call takes must be free: a verdict also holds the same in float64, the answers and inputs of
several trials, and the candidate's own. A rule of thumb; what really runs out ends as OUT_OF_MEMORY."""
_FETCHES = "fetches a pretrained model: behind the wall there is no network and no Hugging Face cache"


class Fitted(NamedTuple):
    """A task as it is judged."""

    task: Task
    scaled: str | None = None
    """Why it is not at its own sizes."""
    skipped: str | None = None
    """Why it is not judged at all."""


class Fitting:
    """Decides for one run; what it has measured is remembered there."""

    def __init__(self, settings: BenchSettings, run: BenchRun) -> None:
        self._settings, self._run = settings, run

    def of(self, evaluator: Evaluator, task: Task, *, is_known: bool) -> Fitted:
        """`is_known`: there is a verdict on it already, so that it fits."""
        if fetches_a_model(task):
            return Fitted(task, skipped=_FETCHES)
        missing = missing_modules(task)
        if missing:
            return Fitted(task, skipped=f"needs {', '.join(missing)}: pip install {' '.join(missing)}")
        if self._settings.max_gib is not None:
            return self._within(evaluator, task, self._settings.max_gib)
        if is_known or self._settings.device != "cpu":  # a device's own memory ends nobody else
            return Fitted(task)
        peak, free = self._peak_bytes(evaluator, task), available_bytes()
        if peak is None or peak * OF_A_VERDICT <= free:
            return Fitted(task)
        told = f"a call takes {_gib(peak)}, a verdict is given {OF_A_VERDICT} times that, and {_gib(free)} are free"
        return Fitted(task, skipped=f"{told}: --max-gib scales it down")

    def _within(self, evaluator: Evaluator, task: Task, max_gib: float) -> Fitted:
        peak, most = self._peak_bytes(evaluator, task), int(max_gib * 2**30)
        if peak is None or peak <= most:
            return Fitted(task)
        told = f"a call takes {_gib(peak)}, more than --max-gib {max_gib:g}"
        scaled = scaled_to(task, most, peak, lambda smaller: self._peak_bytes(evaluator, smaller))
        if scaled is None:
            return Fitted(task, skipped=f"{told}, and no size of its text makes it small enough")
        return Fitted(scaled.task, scaled=f"{told}: {scaled.change} ({_gib(scaled.peak_bytes)})")

    def _peak_bytes(self, evaluator: Evaluator, task: Task) -> int | None:
        if not self._run.has_measured(task):
            self._run.measured(task, evaluator.footprint(task))
        return self._run.peak_bytes(task)


def _gib(size: int) -> str:
    gib = size / 2**30
    return f"{gib:.2f} GiB" if gib >= 1 else f"{gib:.3g} GiB"
