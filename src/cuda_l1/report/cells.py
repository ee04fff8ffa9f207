"""What stands in a cell of a table: values that every format shows in its own way, never ready-made text."""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from typing import Any

from cuda_l1.ratios import towards_one

MISSING = "-"


@dataclass(frozen=True)
class Ratio:
    """A speed-up, with a 95 % interval where there is one."""

    value: float
    low: float | None = None
    high: float | None = None
    remark: str = ""
    """What people must know of it, behind it in brackets."""


@dataclass(frozen=True)
class Quoted:
    """A published speed-up, digit by digit as it was printed."""

    printed: str


@dataclass(frozen=True)
class Share:
    """So many of so many."""

    count: int
    total: int


@dataclass(frozen=True)
class Covered:
    """A mean and how many of the tasks it is over."""

    value: float | None
    tasks: Share


Cell = str | int | float | Ratio | Quoted | Share | Covered | None


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    cells: tuple[Cell, ...]
    measured: bool = True
    """False: quoted from a publication, and shown so that nobody takes it for ours."""


@dataclass(frozen=True)
class Table:
    """A table with its heading, and sentences that a reader of it needs."""

    name: str
    """For programs: one word that says which table it is."""
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


def times(value: float | None) -> str:
    """`1.52x`, or a dash; rounded towards 1, so that it never reads better than it is. What has no such form is told
    by its power of ten, `1.52e+12x`."""
    return MISSING if value is None else f"{_told(value)}x"


def _told(speedup: float) -> str:
    if 0.01 <= speedup < 1e7 or speedup == 0:
        return f"{towards_one(speedup):.2f}"
    towards = decimal.ROUND_FLOOR if speedup > 1 else decimal.ROUND_CEILING
    return f"{decimal.Context(prec=3, rounding=towards).create_decimal(repr(speedup)):.2e}"


def with_bounds(value: float | None, low: float | None, high: float | None) -> str:
    """`1.52x (1.49 to 1.55)`; without an interval just the figure."""
    if value is None or low is None or high is None or low == high:
        return times(value)
    return f"{times(value)} ({_told(low)} to {_told(high)})"


def text(cell: Cell) -> str:
    """A cell for people. What records bring along is printable afterwards, whatever it was."""
    match cell:
        case None:
            return MISSING
        case str():
            return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in cell)
        case Ratio():
            return with_bounds(cell.value, cell.low, cell.high) + (f" ({cell.remark})" if cell.remark else "")
        case Quoted():
            return f"{cell.printed}x"
        case Share():
            return f"{cell.count}/{cell.total}"
        case Covered():
            return f"{times(cell.value)} ({text(cell.tasks)})"
        case int():
            return str(cell)
    return f"{cell:.3f}" if abs(cell) < 1e12 else f"{cell:.3e}"


def plain(cell: Cell) -> Any:
    """A cell for programs: JSON values at full precision."""
    match cell:
        case Ratio():
            return {"value": cell.value, "low": cell.low, "high": cell.high}
        case Quoted():
            return {"value": float(cell.printed), "low": None, "high": None}
        case Share():
            return {"count": cell.count, "total": cell.total}
        case Covered():
            return {"value": cell.value, **plain(cell.tasks)}
    return cell
