"""Second opinions on the jumps among many verdicts: those of a search, asked for when all of them are in."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cuda_l1.archive import Archive
from cuda_l1.search.events import Event, Reviewed
from cuda_l1.search.interfaces import SupportsReview
from cuda_l1.search.review import Reviews
from cuda_l1.training.judging import Asked, Judgement
from cuda_l1.training.sections import EvaluationSection
from cuda_l1.types import Clock, Evaluation, Record


@dataclass(frozen=True)
class Opinions:
    """Has jumps read, one after the other."""

    reviews: Reviews
    within_s: float
    """For all those of a call together; what there is no time for is read when it is written again."""

    @classmethod
    def of(
        cls, section: EvaluationSection, archive: Archive, reviewer: SupportsReview | None, tell: Callable[[str], None]
    ) -> Opinions:
        """Those of `reviewer` under the settings of a recipe; `tell` hears of each, and once that there is nobody."""

        def emit(event: Event) -> None:
            if isinstance(event, Reviewed):
                tell(line(event))

        return cls(Reviews(reviewer, archive, emit, section.clock, section.precision), section.within_s)

    def on(
        self, asked: Sequence[Asked], judged: Sequence[Judgement], before: Sequence[float | None]
    ) -> list[Judgement]:
        """The judgements, each jump over its figure in `before` with the record that holds the opinion."""
        until = time.monotonic() + self.within_s
        read: dict[str, Record] = {}
        for each, one, best in zip(asked, judged, before, strict=True):
            left_s = until - time.monotonic()
            if one.record is not None and each.candidate.id not in read and left_s > 0:
                read[each.candidate.id] = self.reviews.of(
                    one.record,
                    each.task,
                    best_before=best,
                    within_s=left_s,
                    roofline_us=roofline_us(one.record.evaluation, self.reviews.clock),
                )
        return [one._replace(record=read.get(a.candidate.id, one.record)) for a, one in zip(asked, judged, strict=True)]


def roofline_us(evaluation: Evaluation, clock: Clock | None) -> float | None:
    """What moving the task's bytes takes, as its verdict counted them; None on a CPU, whose caches hold them, and where
    what a caller waits for is the objective."""
    work = evaluation.work
    if work is None or evaluation.environment.device == "cpu" or clock == "call":
        return None
    return work.moved_bytes / work.bytes_per_us


def line(event: Reviewed) -> str:
    """What a reviewer says, or that there is none."""
    if event.finding is None:
        return f"no second opinion on a reply, though {event.jump}: nobody is named (evaluation.reviewer = URL)"
    return f"second opinion on {event.candidate_id[:12]}: {event.finding.evidence}"
