"""Moments at which a judge's work may be interrupted, so that others time on the device meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable

from .channel import Channel

SLICE_S = 1.0
"""A judge works for so long before it offers to rest: who waits to time waits for a call then, not for a check."""


class Rests:
    """Asks the parent whether somebody waits to time, and waits for its answer; what runs here is idle meanwhile."""

    def __init__(self, channel: Channel, settle: Callable[[], None]) -> None:
        """`channel`: the parent's. `settle`: wait for all that this process has begun on the device, and give back what
        it does not need of it."""
        self._channel, self._settle = channel, settle
        self._since: float | None = None
        self.rested_s = 0.0
        """Seconds in all, for those who count theirs by a clock."""

    def begin(self) -> None:
        """An operation begins that may be interrupted."""
        self._since = time.monotonic()

    def end(self) -> None:
        """What follows may not."""
        self._since = None

    def __call__(self) -> None:
        """A good moment: no call is being timed here."""
        begin = time.monotonic()
        if self._since is None or begin - self._since < SLICE_S:
            return
        self._settle()
        self._channel.send({"rests": True})
        while self._channel.receive()[0].get("op") != "go on":
            pass
        self._since = time.monotonic()
        self.rested_s += self._since - begin
