"""Lanes of a CPU: disjoint sets of as many cores each, on which evaluators time at the same time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cuda_l1.api.pool import HOST_BYTES, available_bytes
from cuda_l1.config import EvaluatorSettings
from cuda_l1.errors import UsageError
from cuda_l1.evaluator.environment import usable_cores
from cuda_l1.texts import many
from cuda_l1.training.sections import EvaluationSection

Lane = tuple[int, ...]


def lanes_for(section: EvaluationSection, threads: int) -> list[Lane]:
    """The lanes of `[evaluation] cores` that the usable cores make, as many as the recipe and memory allow; none where
    that is not set. The first `threads` cores are in none: a policy that computes here has them.

    Raises UsageError where there are too few cores for one lane.
    """
    if section.cores is None:
        return []
    usable = usable_cores()
    free = usable[threads:]
    if len(free) < section.cores:
        own = f", and run.threads = {threads} of them are for the policy" if threads else ""
        raise UsageError(
            f"evaluation.cores {section.cores}: this process may use {many(len(usable), 'core')}{own}; give fewer"
        )
    found = [free[first : first + section.cores] for first in range(0, len(free) - section.cores + 1, section.cores)]
    return found[: section.at_once or max(1, available_bytes() // HOST_BYTES)]


def on_lane(settings: EvaluatorSettings, lane: Lane) -> EvaluatorSettings:
    """The settings of an evaluator on one of several lanes, whose figures count as of one place."""
    return settings.model_copy(update={"lane": lane, "interchangeable": True})


@contextmanager
def kept_off(lanes: Sequence[Lane]) -> Iterator[None]:
    """Meanwhile all threads of this process, and what they start, run on the usable cores that are in no lane; where
    there is none, nothing changes."""
    usable = set(usable_cores())
    own = usable.difference(*lanes)
    if own and lanes:
        _move(own)
    try:
        yield
    finally:
        if own and lanes:
            _move(usable)


def _move(cores: set[int]) -> None:
    """Every thread of this process; one that ends meanwhile needs no moving."""
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            os.sched_setaffinity(int(thread.name), cores)
