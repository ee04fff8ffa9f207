"""What the live views of long commands share.

Nothing refreshes in the background: on a CPU a timed call would share its core with the display.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from rich.live import Live

from cuda_l1.cli.output import Screen


class Display:
    """On a terminal a table that is there while the block lasts; `_live` is None elsewhere."""

    def __init__(self) -> None:
        console = Screen(sys.stderr)
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._live:
            self._live.stop()
