"""Variants of a task to learn from: each proposer tries, the one verdict function judges, the first right ones stay."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from cuda_l1 import scoring
from cuda_l1.archive import Archive
from cuda_l1.config import SCREEN, CollectSettings
from cuda_l1.proposers import NOT_YET, NotYet, Proposer
from cuda_l1.search.disturbed import undisturbed
from cuda_l1.search.interfaces import SupportsEvaluate
from cuda_l1.search.schedule import Schedule
from cuda_l1.search.verdicts import known, screening
from cuda_l1.tasks.contamination import normal_text
from cuda_l1.types import Candidate, Record, Task


class Writer(NamedTuple):
    """A proposer as a collection counts it."""

    by: str
    """A model's name, or the proposer's."""
    proposer: Proposer
    replies: Callable[[], int] | None = None
    """Of a model: its replies of the run on the task at hand, whatever they hold. It keeps to the limit itself, since
    it asks before it proposes. None: each proposal is an attempt."""


class Attempts(NamedTuple):
    """What one proposer made of one task."""

    by: str
    """A model's name, or the proposer's."""
    tried: int
    kept: tuple[Record, ...]
    """With the candidate as it was proposed here: a verdict that was known may be of a text that another wrote, too."""


class Given:
    """A proposer that offers what a data set brought along."""

    name = "import"
    failures: Sequence[str] = ()

    def __init__(self, variants: dict[str, list[Candidate]]) -> None:
        """`variants`: by the sha of their task."""
        self._left = {sha: list(found) for sha, found in variants.items()}

    def propose(self, task: Task, history: Sequence[Record], until: float) -> Candidate | None:
        """The next one that was brought along for the task."""
        left = self._left.get(task.sha)
        return left.pop(0) if left else None


class Quota:
    """A proposer that stops after so many attempts, or so many right variants. It sees its own records alone, so that
    what one model is told never depends on another."""

    def __init__(self, writer: Writer, settings: CollectSettings) -> None:
        self.name, self.by = writer.proposer.name, writer.by
        self.kept: list[Record] = []
        self._writer, self._settings = writer, settings
        self._own: set[str] = set()
        self._proposals = 0

    @property
    def failures(self) -> Sequence[str]:
        """The proposer's."""
        return self._writer.proposer.failures

    @property
    def tried(self) -> int:
        """Attempts so far, copies included."""
        return self._writer.replies() if self._writer.replies else self._proposals

    def propose(self, task: Task, history: Sequence[Record], until: float) -> Candidate | NotYet | None:
        """The proposer's next candidate; None when enough was tried or kept."""
        if self._proposals >= self._settings.attempts or len(self.kept) >= self._settings.keep:
            return None
        candidate = self._writer.proposer.propose(task, self._of(history), until)
        if candidate is not None and candidate is not NOT_YET:
            self._own.add(candidate.id)
            self._proposals += 1
        return candidate

    def wrote(self, candidate: Candidate) -> bool:
        """Whether it has proposed this text."""
        return candidate.id in self._own

    def best(self, history: Sequence[Record]) -> float | None:
        """The highest speed-up against eager among its own records that count."""
        counted = [record.evaluation for record in self._of(history) if scoring.counts(record.evaluation)]
        return max((scoring.speedup(evaluation) or 0.0 for evaluation in counted), default=None)

    def _of(self, history: Sequence[Record]) -> list[Record]:
        return [record for record in history if record.candidate.id in self._own]


def collect(
    task: Task,
    writers: Sequence[Writer],
    *,
    settings: CollectSettings,
    archive: Archive,
    evaluator: SupportsEvaluate,
    run: str,
    on_record: Callable[[Record, bool], None] = lambda record, is_known: None,
) -> list[Attempts]:
    """What each of `writers` made of `task`: the first `settings.keep` right variants of at
    most `settings.attempts`, no two of which are the same text but for comments and formatting.

    Right is what counts (`scoring.counts`); how fast it is decides nothing. Every record is in the archive as soon as
    it exists, and what is there already is not paid for again unless others on the machine disturbed it. `on_record`
    hears of each, and whether it was known.

    Raises what `verdict` raises, TaskError for a task that cannot be judged.
    """
    quotas = [Quota(writer, settings) for writer in writers]
    schedule = Schedule(task, quotas)
    history: list[Record] = []
    texts: set[str] = set()
    while (candidate := schedule.propose(history, math.inf)) is not None:
        if any(record.candidate.id == candidate.id for record in history):
            continue
        is_known = known(candidate, SCREEN, archive, evaluator) is not None
        author = next(quota for quota in quotas if quota.wrote(candidate))
        protocol = screening([settings.llm], author.best(history))
        record = undisturbed(task, candidate, protocol=protocol, archive=archive, evaluator=evaluator, run=run)
        history.append(record)
        on_record(record, is_known)
        text = normal_text(candidate.source)
        if scoring.counts(record.evaluation, settings.precision) and text not in texts:
            texts.add(text)
            kept = record.model_copy(update={"candidate": candidate})
            author.kept.append(kept)
    return [Attempts(quota.by, quota.tried, tuple(quota.kept)) for quota in quotas]
