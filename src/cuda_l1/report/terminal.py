"""Small tables for a terminal. Speed-ups are rounded towards 1, so that none reads better than it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Column, Table
from rich.text import Text

from cuda_l1.report import cells
from cuda_l1.report.cells import MISSING, times, with_bounds
from cuda_l1.types import Timing

WORDS = 24
"""So wide a column stays at least, if it has as much: a figure with its interval. Words go on in the next line."""
GAP = 3
"""Between two columns."""

__all__ = ["MISSING", "microseconds", "rendered", "table", "times", "with_interval"]


def with_interval(timing: Timing | None) -> str:
    """`1.52x (1.49 to 1.55)`; without an interval just the figure."""
    if timing is None:
        return MISSING
    return with_bounds(timing.speedup, timing.speedup_low, timing.speedup_high)


def microseconds(value: float | None) -> str:
    """`12.3 us`, from 10,000 on `12.3 ms`."""
    if value is None:
        return MISSING
    return f"{value / 1000:.1f} ms" if value >= 10_000 else f"{value:.1f} us"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None) -> Grid:
    """A plain table; figures and words alike are left as they are given."""
    return Grid(columns, [(row, None) for row in rows], title)


class Grid:
    """A plain table of which nothing is cut: where it is too wide, the columns that do not fit stand below in a table
    of their own, beside those that tell the rows apart."""

    def __init__(
        self, columns: Sequence[str], rows: Sequence[tuple[Sequence[str], str | None]], title: str | None = None
    ) -> None:
        """`rows`: cells, and in which style they are shown."""
        self._columns, self._rows, self._title = columns, rows, title

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, places in enumerate(self._parts(options.max_width)):
            heads = (Column(self._columns[place], overflow="fold") for place in places)
            title = self._title if number == 0 else None
            made = Table(*heads, box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
            for row, style in self._rows:
                made.add_row(*(row[place] for place in places), style=style)
            yield made

    def _parts(self, width: int) -> list[list[int]]:
        """The columns of each table, by their places."""
        wide = [
            min(max(map(cell_len, texts)), WORDS) + GAP for texts in zip(self._columns, *self._texts(), strict=True)
        ]
        if GAP + sum(wide) <= width:
            return [[*range(len(wide))]]
        keys = [*range(self._keys(wide, width))]
        parts, room = [[*keys]], width - GAP - sum(wide[: len(keys)])
        left = room
        for place in range(len(keys), len(wide)):
            if wide[place] > left and left < room:
                parts.append([*keys])
                left = room
            parts[-1].append(place)
            left -= wide[place]
        return parts

    def _keys(self, wide: Sequence[int], width: int) -> int:
        """How many of the first columns tell the rows apart; one where they would leave no room for another."""
        for number in range(1, len(wide)):
            if sum(wide[:number]) + WORDS + 2 * GAP > width:
                break
            if len({tuple(row[:number]) for row in self._texts()}) == len(self._rows):
                return number
        return 1

    def _texts(self) -> list[Sequence[str]]:
        return [row for row, _ in self._rows]


def rendered(shown: cells.Table) -> Iterator[RenderableType]:
    """A report's table and its notes; what we did not measure is grey."""
    yield Text(shown.title, style="bold")
    rows = [([cells.text(cell) for cell in row.cells], None if row.measured else "bright_black") for row in shown.rows]
    yield Grid(shown.columns, rows)
    yield from (Text(f"  {note}", style="bright_black") for note in shown.notes)
