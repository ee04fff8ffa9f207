"""What a search tells while it runs, for a live display or a log. Speed-ups are against eager."""

from __future__ import annotations

from dataclasses import dataclass

from cuda_l1.search.stopping import StopReason
from cuda_l1.types import Finding, Outcome


@dataclass(frozen=True)
class Event:
    """Base of all."""


@dataclass(frozen=True)
class Started(Event):
    """The search begins."""

    task_id: str
    run: str
    baselines: tuple[str, ...]
    proposers: tuple[str, ...]
    budget_s: float | None
    budget_evaluations: int | None


@dataclass(frozen=True)
class Evaluating(Event):
    """An evaluation begins, which may take a while."""

    label: str
    candidate_id: str
    protocol: str
    """`screen`, `final`, or `review` where a reviewer is asked."""


@dataclass(frozen=True)
class BaselineDone(Event):
    """A baseline was measured, or left out (`outcome` is None) for lack of time."""

    name: str
    outcome: Outcome | None
    speedup: float | None
    detail: str
    """Why it failed, or does not count."""
    counts: bool


@dataclass(frozen=True)
class CandidateDone(Event):
    """A proposed candidate has a record, `known` when it came from the archive and cost nothing; or none (`outcome` is
    None), for lack of time."""

    label: str
    candidate_id: str
    outcome: Outcome | None
    speedup: float | None
    best_so_far: float | None
    """The highest speed-up of a candidate that may win, this one included."""
    known: bool
    detail: str
    """Why it failed, or does not count."""
    counts: bool


@dataclass(frozen=True)
class Waiting(Event):
    """Nothing can be evaluated until one of these proposers has something."""

    proposers: tuple[str, ...]


@dataclass(frozen=True)
class Replied(Event):
    """A language model has answered; `problem` says why that is no candidate, None that it is one."""

    model: str
    problem: str | None
    detail: str
    tokens_in: int
    tokens_out: int
    outcome: Outcome | None = None
    """Of a text that was judged before."""
    speedup: float | None = None
    """Of the same."""
    counts: bool = False
    is_copy: bool = False
    """Whether an earlier reply of the run held the same text."""


@dataclass(frozen=True)
class Reviewed(Event):
    """A speed-up is hard to believe (`jump` says why), and this is what the reviewer finds; None where there is no
    reviewer, which is told once, and of no text that our own techniques wrote."""

    label: str
    candidate_id: str
    jump: str
    finding: Finding | None


@dataclass(frozen=True)
class Stopped(Event):
    """No more candidates; a confirmation follows unless `interrupted`."""

    reason: StopReason
    evaluations: int
    duplicates: int


@dataclass(frozen=True)
class Confirmed(Event):
    """A final is in: `holds` when it is accepted and faster than eager by more than its interval."""

    label: str
    candidate_id: str
    holds: bool
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None
    detail: str
