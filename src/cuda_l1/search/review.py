"""A second opinion on a jump: asked once its verdict is in the archive, and recorded beside it.

A record is never changed, so an opinion makes a second record of the same evaluation with one finding more, which
stands from then on. An interruption between the two costs nothing: the opinion is asked for the next time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cuda_l1 import scoring
from cuda_l1.archive import Archive
from cuda_l1.config import Precision
from cuda_l1.reviewer import NO_OPINION, REVIEW
from cuda_l1.search.events import Evaluating, Event, Reviewed
from cuda_l1.search.interfaces import SupportsReview
from cuda_l1.types import Candidate, Clock, Finding, Record, Task


@dataclass
class Reviews:
    """Asks a reviewer about jumps. Where there is none, the first in a text that is not our own techniques' is told."""

    reviewer: SupportsReview | None
    archive: Archive
    emit: Callable[[Event], None]
    clock: Clock | None = None
    """The objective whose reward jumps; None: the device's own."""
    precision: Precision = "default"
    roofline_us: float | None = None
    _told: bool = field(default=False, init=False)

    def of(
        self,
        record: Record,
        task: Task,
        *,
        best_before: float | None,
        within_s: float | None = None,
        roofline_us: float | None = None,
    ) -> Record:
        """`record`, or where it is a jump over `best_before` the one with an opinion that now stands in its place.

        `roofline_us` is that of this task, where it is not the one task of all.
        """
        evaluation, candidate = record.evaluation, record.candidate
        least_us = roofline_us if self.roofline_us is None else self.roofline_us
        jump = scoring.jump(evaluation, best_before, clock=self.clock, precision=self.precision, roofline_us=least_us)
        if jump is None or is_reviewed(record):
            return record
        if self.reviewer is None:
            if not self._told and not _is_ours(candidate):
                self.emit(Reviewed(candidate.label, candidate.id, jump, None))
                self._told = True
            return record
        self.emit(Evaluating(candidate.label, candidate.id, "review"))
        cases = [similar.case for similar in self.archive.hacks.similar(candidate.source)]
        finding = self.reviewer.review(task, candidate, evaluation, jump=jump, cases=cases, within_s=within_s)
        self.emit(Reviewed(candidate.label, candidate.id, jump, finding))
        return self._recorded(record, task, finding)

    def _recorded(self, record: Record, task: Task, finding: Finding) -> Record:
        before = record.evaluation.findings
        if finding.check == NO_OPINION and any(f.check == NO_OPINION for f in before):
            return record
        findings = (*(f for f in before if f.check != NO_OPINION), finding)
        reviewed = Record(
            run=record.run,
            sequence=self.archive.next_sequence(record.run),
            candidate=record.candidate,
            evaluation=record.evaluation.model_copy(update={"findings": findings}),
        )
        self.archive.append(reviewed, task)
        return reviewed


def _is_ours(candidate: Candidate) -> bool:
    """Whether our own techniques alone wrote it: a large speed-up of theirs is what they are for."""
    return bool(candidate.origins) and all(origin.proposer == "techniques" for origin in candidate.origins)


def is_reviewed(record: Record) -> bool:
    """Whether a reviewer had an opinion on it."""
    return any(finding.check == REVIEW for finding in record.evaluation.findings)
