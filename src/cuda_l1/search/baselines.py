"""What a candidate must beat."""

from __future__ import annotations

import time
from collections.abc import Sequence

from cuda_l1 import scoring
from cuda_l1.config import SCREEN
from cuda_l1.errors import OutOfTimeError, TaskError
from cuda_l1.proposers.baselines import COMPILING
from cuda_l1.search.events import BaselineDone
from cuda_l1.search.result import BaselineResult
from cuda_l1.search.state import Search, total_s
from cuda_l1.types import Candidate, Outcome

UNABLE = (Outcome.BUILD_FAILED, Outcome.CRASHED)
"""Outcomes of eager after which no candidate can be timed."""


def measure_eager(search: Search, eager: Candidate) -> None:
    """Screens what everything is compared with.

    Raises TaskError where it cannot be built or crashes: there is nothing then to compare anything with.
    """
    result, _ = _measure(search, eager, is_eager=True)
    _note(search, result)
    if result.outcome in UNABLE:
        raise TaskError(
            f"{search.task.id}: the module itself is {result.outcome} where candidates run: {result.detail}"
        )


def measure_baselines(search: Search, baselines: Sequence[Candidate]) -> None:
    """Screens each baseline after eager, and notes the best of a class that may win.

    One that fails, or begins when a third of the time budget is gone, is named in the table and left out; so is one
    that compiles and would not end within that third, by what another one took, and one that has begun and is not done
    when the time is up. The best includes those that are slower than eager on the other clock: leaving them out would
    flatter us.
    """
    compiling_s = 0.0
    for baseline in baselines:
        compiles = baseline.label in COMPILING
        progress = search.progress()
        if not search.rules.another_baseline(progress, compiling_s if compiles else 0.0):
            _note(search, _left_out(baseline, "no time left for it"))
            continue
        began, within_s = time.monotonic(), search.rules.within_s(progress)
        try:
            result, took_s = _measure(search, baseline, is_eager=False, within_s=within_s)
        except OutOfTimeError:
            took_s = time.monotonic() - began
            result = _left_out(baseline, f"given up after {took_s:.0f} s; a longer --budget leaves it more")
        compiling_s = max(compiling_s, took_s) if compiles else compiling_s
        _note(search, result)


def _left_out(baseline: Candidate, why: str) -> BaselineResult:
    return BaselineResult(name=baseline.label, candidate_id=baseline.id, outcome=None, detail=f"not measured: {why}")


def _note(search: Search, result: BaselineResult) -> None:
    search.baselines.append(result)
    search.emit(BaselineDone(result.name, result.outcome, result.speedup, result.detail, result.counts))


def _measure(
    search: Search, baseline: Candidate, *, is_eager: bool, within_s: float | None = None
) -> tuple[BaselineResult, float]:
    """What is known of it, and the seconds that its screen took, now or when it was made."""
    began, paid = time.monotonic(), search.evaluations
    record = search.obtain(baseline, SCREEN, within_s=within_s)
    if is_eager and record.evaluation.outcome in UNABLE and search.evaluations == paid:
        record = search.obtain(baseline, SCREEN, fresh=True)  # what was missing then may be there now
    took_s = time.monotonic() - began if search.evaluations > paid else total_s(record)
    search.history.append(record)
    evaluation, precision = record.evaluation, search.settings.precision
    speedup = scoring.speedup(evaluation, search.clock, is_eager=is_eager) if evaluation.accepted else None
    counts = scoring.counts(evaluation, precision, is_eager=is_eager)
    if speedup is not None and counts:
        search.counted_baselines[baseline.label] = baseline, speedup
    result = BaselineResult(
        name=baseline.label,
        candidate_id=baseline.id,
        outcome=evaluation.outcome,
        speedup=speedup,
        detail=evaluation.detail or scoring.why_not(evaluation, precision, is_eager=is_eager),
        counts=counts,
    )
    return result, took_s
