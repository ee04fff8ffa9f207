"""Whose turn it is to propose."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

from cuda_l1 import interruption
from cuda_l1.proposers import NOT_YET, Proposer
from cuda_l1.types import Candidate, Record, Task

REPEATS = 20
"""A proposer leaves after this many proposals in a row that had been made before."""
PAUSE_S = 0.02
"""Between two looks at proposers of whom each says that it has nothing yet. Nothing is timed meanwhile."""


class Schedule:
    """Proposers in turn, until each has nothing more to offer or only repeats what was offered."""

    def __init__(
        self,
        task: Task,
        proposers: Sequence[Proposer],
        offered: Sequence[Candidate] = (),
        on_wait: Callable[[tuple[str, ...]], None] = lambda names: None,
    ) -> None:
        """`offered` were proposed before; `on_wait` hears the names of those that are waited for."""
        self._task = task
        self._waiting = deque((proposer, 0) for proposer in proposers)
        self._offered = {candidate.id for candidate in offered}
        self._on_wait = on_wait

    def propose(self, history: Sequence[Record], until: float, *, waits: bool = True) -> Candidate | None:
        """The next proposal, possibly one made before; None when every proposer is exhausted or `until` has come.

        A proposer that has nothing yet keeps no other waiting; where none has anything yet this waits, or with `waits`
        off returns None. Raises KeyboardInterrupt for a Ctrl-C that got lost in a proposer.
        """
        without, has_told = 0, False
        while self._waiting:
            if without == len(self._waiting):
                if not waits or time.monotonic() > until:
                    return None
                if not has_told:
                    self._on_wait(tuple(proposer.name for proposer, _ in self._waiting))
                    has_told = True
                time.sleep(PAUSE_S)
                without = 0
            proposer, repeats = self._waiting.popleft()
            candidate = proposer.propose(self._task, history, until)
            interruption.pass_on()  # torch catches everything in places: a search would end as if nothing were left
            if candidate is None:
                continue
            if candidate is NOT_YET:
                self._waiting.append((proposer, repeats))
                without += 1
                continue
            repeats = repeats + 1 if candidate.id in self._offered else 0
            self._offered.add(candidate.id)
            if repeats < REPEATS:
                self._waiting.append((proposer, repeats))
            return candidate
        return None
