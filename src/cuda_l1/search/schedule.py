"""Whose turn it is to propose."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from cuda_l1.proposers import Proposer
from cuda_l1.types import Candidate, Record, Task

REPEATS = 20
"""A proposer leaves after this many proposals in a row that had been made before."""


class Schedule:
    """Proposers in turn, until each has nothing more to offer or only repeats what was offered."""

    def __init__(self, task: Task, proposers: Sequence[Proposer], offered: Sequence[Candidate] = ()) -> None:
        self._task = task
        self._waiting = deque((proposer, 0) for proposer in proposers)
        self._offered = {candidate.id for candidate in offered}

    def propose(self, history: Sequence[Record], until: float) -> Candidate | None:
        """The next proposal, possibly one made before; None when every proposer is exhausted or `until` has come."""
        while self._waiting:
            proposer, repeats = self._waiting.popleft()
            candidate = proposer.propose(self._task, history, until)
            if candidate is None:
                continue
            repeats = repeats + 1 if candidate.id in self._offered else 0
            self._offered.add(candidate.id)
            if repeats < REPEATS:
                self._waiting.append((proposer, repeats))
            return candidate
        return None
