"""Verdicts on many candidates: what is known comes from the archive, the same text is judged once, the rest at once."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from cuda_l1.api.judging import Judged, Opponent, judge, reviewed
from cuda_l1.api.pool import EvaluatorPool, Job
from cuda_l1.archive import Archive
from cuda_l1.config import AnyProtocol
from cuda_l1.evaluator import Evaluator
from cuda_l1.search.review import Reviews
from cuda_l1.search.verdicts import known
from cuda_l1.types import Candidate, Clock, Task

_LONG_TEXT = 1 << 18
"""Characters from which on only equal texts are the same: parsing them takes longer than it saves."""
_COMPILES = ("load_inline", "cpp_extension", "CUDAExtension")


class Asked(NamedTuple):
    """A candidate and the task that it is for."""

    task: Task
    candidate: Candidate
    best: Opponent | None = None
    """What it is timed against besides eager."""


@dataclass(frozen=True)
class Answer:
    """The verdict on one of those that were asked about."""

    index: int
    """Its place among them."""
    judged: Judged
    source: Literal["measured", "archive", "same text"]
    same_as: int | None = None
    """The place of the candidate that was judged in its stead: its text differs in trailing blanks at most."""


def judge_many(
    asked: Sequence[Asked],
    *,
    protocol: AnyProtocol,
    archive: Archive,
    pool: EvaluatorPool,
    run: str,
    fresh: bool = False,
    clock: Clock | None = None,
    on_task: Callable[[str], None] = lambda sha: None,
    reviews: Reviews | None = None,
) -> Iterator[Answer]:
    """A verdict for each, in the order in which they become known; every finished one is in the archive by then.

    With `reviews` jumps get a second opinion, one at a time, while others are still being judged.

    Raises as `Evaluator.evaluate` and `Archive.append` do, at the first fault.
    """
    first, twins = _without_copies(asked)

    def answers(index: int, judged: Judged, source: Literal["measured", "archive"]) -> Iterator[Answer]:
        if reviews is not None:
            judged = reviewed(judged, asked[index].task, reviews)
        return _answers(index, judged, source, twins)

    jobs = []
    for index in first:
        task, candidate, best = asked[index]
        opponents = [best.candidate] if best and not best.is_eager else []
        stored = None if fresh else known(candidate, protocol, archive, pool.first, baselines=opponents)
        if stored is not None:
            yield from answers(index, Judged(stored, best, clock), "archive")
            continue
        is_slow = any(word in candidate.source for word in _COMPILES)
        jobs.append(Job(index, task.sha, f"{task.name} {candidate.label}", is_slow_to_build=is_slow))

    def do(evaluator: Evaluator, index: int) -> Judged:
        task, candidate, best = asked[index]
        return judge(
            task,
            candidate,
            protocol=protocol,
            best=best,
            archive=archive,
            evaluator=evaluator,
            run=run,
            fresh=fresh,
            clock=clock,
        )

    for job, judged in pool.run(jobs, do):
        yield from answers(job.work, judged, "measured")


def _answers(
    index: int, judged: Judged, source: Literal["measured", "archive"], twins: dict[int, list[int]]
) -> Iterator[Answer]:
    yield Answer(index, judged, source)
    for twin in twins.get(index, []):
        yield Answer(twin, judged, "same text", same_as=index)


def _without_copies(asked: Sequence[Asked]) -> tuple[list[int], dict[int, list[int]]]:
    """(places of the first of each text, place of a first one -> places of its copies)."""
    places: dict[tuple[str, tuple[str, str]], int] = {}
    twins: dict[int, list[int]] = {}
    for index, (task, candidate, _) in enumerate(asked):
        first = places.setdefault((task.sha, normalised(candidate.source)), index)
        if first != index:
            twins.setdefault(first, []).append(index)
    return list(places.values()), twins


def normalised(source: str) -> tuple[str, str]:
    """Equal for texts of one meaning that differ in blanks at the ends of lines, or in empty lines at the ends.

    The syntax trees must be equal, too: such a blank may stand inside a string, or after a backslash.
    """
    text = "\n".join(line.rstrip(" \t\r") for line in source.split("\n")).strip("\n")
    if len(source) > _LONG_TEXT:
        return source, ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return text, ast.dump(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source, ""
