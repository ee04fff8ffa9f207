"""Says that reading a large archive goes on."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from cuda_l1.cli.output import talk

EVERY_S = 2.0


class Reading:
    """Counts what is read; from two seconds on the count is on stderr, rewritten in place on a terminal."""

    def __init__(self, what: str) -> None:
        self._what, self._count = what, 0
        self._next = time.monotonic() + EVERY_S
        self._end = "\r" if sys.stderr.isatty() else "\n"
        self._told = False

    def __enter__(self) -> Self:
        return self

    def one_more(self) -> None:
        """One more was read."""
        self._count += 1
        if time.monotonic() >= self._next:
            self._next, self._told = time.monotonic() + EVERY_S, True
            talk(f"{self._what}: {self._count}{self._end}")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._told and self._end == "\r":
            talk("\n")
