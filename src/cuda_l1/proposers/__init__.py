"""Who writes candidates: techniques, baselines, language models, trained checkpoints. None of them sees the archive."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final, Protocol, runtime_checkable

from cuda_l1.errors import EndpointError, UsageError
from cuda_l1.types import Candidate, Record, Task


class NotYet(Enum):
    """The type of `NOT_YET`."""

    NOT_YET = "not yet"


NOT_YET: Final = NotYet.NOT_YET
"""What a proposer says while its next candidate is being written elsewhere: others may go on, and it is asked again."""


class Proposer(Protocol):
    """Writes one candidate at a time, guided by what is already known about the task."""

    name: str
    """Stored as the origin's `proposer`."""

    @property
    def failures(self) -> Sequence[str]:
        """What it could not write so far, one line each, for people."""
        ...

    def propose(self, task: Task, history: Sequence[Record], until: float) -> Candidate | NotYet | None:
        """The next candidate for `task`, never one it has offered before; None when there is nothing more to offer.

        Never waits for anything that takes no work of this machine's, a model's answer say: that is `NOT_YET`.

        `history` holds the records of this task so far, of all proposers, oldest first. `until` is a
        `time.monotonic()`: nothing new is begun after it, and None then says no more than that the time is up.
        """
        ...


@runtime_checkable
class ModelProposer(Proposer, Protocol):
    """One that asks language models, at an endpoint or in this process."""

    @property
    def fault(self) -> EndpointError | UsageError | None:
        """Why nothing could be asked, where no model has ever replied."""
        ...

    def close(self) -> None:
        """Stores replies that have come in, and leaves what is under way."""
        ...
