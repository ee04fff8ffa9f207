"""Small tables for a terminal. Speed-ups are rounded towards 1, so that none reads better than it is."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table

from cuda_l1.scoring import towards_one
from cuda_l1.types import Timing

MISSING = "-"


def times(value: float | None) -> str:
    """`1.52x`, or a dash."""
    return MISSING if value is None else f"{towards_one(value):.2f}x"


def with_interval(timing: Timing | None) -> str:
    """`1.52x (1.49 to 1.55)`; without an interval just the figure."""
    if timing is None:
        return MISSING
    if timing.speedup_low is None or timing.speedup_high is None:
        return times(timing.speedup)
    return f"{times(timing.speedup)} ({towards_one(timing.speedup_low):.2f} to {towards_one(timing.speedup_high):.2f})"


def microseconds(value: float | None) -> str:
    """`12.3 us`, from 10,000 on `12.3 ms`."""
    if value is None:
        return MISSING
    return f"{value / 1000:.1f} ms" if value >= 10_000 else f"{value:.1f} us"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None) -> Table:
    """A plain table; figures and words alike are left as they are given."""
    made = Table(*columns, box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for row in rows:
        made.add_row(*row)
    return made
