"""A reviewer that reads its opinion off a candidate's text, and remembers what it was asked."""

from __future__ import annotations

import time
from collections.abc import Sequence

from cuda_l1.types import Candidate, Evaluation, Finding, HackCase, Task


class FakeReviewer:
    """Suspects what says `cheat`, has no opinion on what says `riddle`."""

    name = "fake"

    def __init__(self, takes_s: float = 0.0) -> None:
        self.asked: list[str] = []
        self.jumps: list[str] = []
        self.cases: list[list[str]] = []
        self.within_s: list[float | None] = []
        self._takes_s = takes_s

    def review(
        self,
        task: Task,
        candidate: Candidate,
        evaluation: Evaluation,
        *,
        jump: str,
        cases: Sequence[HackCase],
        within_s: float | None = None,
    ) -> Finding:
        self.asked.append(candidate.source)
        self.jumps.append(jump)
        self.cases.append([case.name for case in cases])
        self.within_s.append(within_s)
        time.sleep(self._takes_s)
        if "riddle" in candidate.source:
            return Finding(check="no-opinion", severity="note", evidence="cannot be reached")
        severity = "suspect" if "cheat" in candidate.source else "note"
        return Finding(check="review", severity=severity, evidence="it says so")
