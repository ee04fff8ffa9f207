"""Who wrote a text that has a verdict already: baselines and columns of a release have rows of their own in reports."""

from __future__ import annotations

from cuda_l1.types import Candidate, Record

ROWS = ("baselines", "release")
"""The proposers of these."""


def is_credited(record: Record, candidate: Candidate) -> bool:
    """Whether a record of the same text names whoever has a row for it."""
    return _rows(candidate) <= _rows(record.candidate)


def credited(record: Record, candidate: Candidate) -> Candidate:
    """The candidate of a record, with those beside its own origins who wrote the same text."""
    mine = record.candidate
    return mine.model_copy(update={"origins": (*mine.origins, *candidate.origins)})


def _rows(candidate: Candidate) -> set[tuple[str, tuple[str, ...]]]:
    return {(each.proposer, each.techniques) for each in candidate.origins if each.proposer in ROWS}
