"""How a verdict ends early: Failure is the candidate's outcome, all else is the machine's fault or the task's."""

from __future__ import annotations

from cuda_l1.errors import InfrastructureError, NoRoomError, TaskError
from cuda_l1.types import Outcome


class Late(InfrastructureError):
    """The judge did not answer in time."""


class TaskFault(InfrastructureError):
    """The judge died while it examined the reference: of the reference, or of the machine."""


class MemoryContested(InfrastructureError):
    """Memory or time ran out that other evaluations share: only what happens alone says whose doing it is."""


class DeviceMemoryShort(MemoryContested):
    """The device had no memory left for the judge or for an opponent: a candidate or another program holds it."""


class Failure(Exception):
    """A verdict ends here: outcome, one line, and the tail of the candidate's own output."""

    def __init__(self, outcome: Outcome, detail: str, log: str = "", *, contested: bool = False) -> None:
        super().__init__(detail)
        self.outcome, self.detail, self.log = outcome, detail, log
        self.contested = contested
        """It ran out of memory, or of time, that it may have shared with others."""


def bad_task(text: str) -> TaskError:
    """What a judge says of the reference, as an error."""
    return NoRoomError(text) if "out of device memory" in text else TaskError(text)


def eager_failed(failure: Failure) -> InfrastructureError:
    """Eager has to work wherever it is the opponent: its failure is no candidate's."""
    text = f"the reference itself failed in a runner: {failure.outcome}: {failure.detail}"
    return DeviceMemoryShort(text) if failure.outcome is Outcome.OUT_OF_MEMORY else InfrastructureError(text)


def one_line(text: str, limit: int = 500) -> str:
    """Text of foreign origin as one printable line: no control characters, no lone surrogates."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))[:limit]
