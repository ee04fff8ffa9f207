"""`--budget`: a number with a unit is time, a bare one counts evaluations."""

from __future__ import annotations

import re
from typing import NamedTuple

from cuda_l1.config import YEAR_S
from cuda_l1.errors import UsageError

MOST_EVALUATIONS = 1_000_000_000
_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


class Budget(NamedTuple):
    """One of the two is set."""

    seconds: float | None
    evaluations: int | None


def parse_budget(text: str | float) -> Budget:
    """`60s`, `5m`, `1.5h` or `20`. Raises UsageError for anything else, and for what is not positive."""
    match = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*([a-z]*)", str(text).strip().lower())
    if match is None or (match[2] and match[2] not in _SECONDS):
        raise UsageError(f"budget `{text}`: give a time (60s, 5m, 1h) or a number of evaluations (20)")
    number, unit = float(match[1]), match[2]
    if number <= 0:
        raise UsageError(f"budget `{text}`: nothing fits into it; give e.g. 60s, or 20 for 20 evaluations")
    if unit and number * _SECONDS[unit] > YEAR_S:
        raise UsageError(f"budget `{text}`: is more than a year; give e.g. 1h")
    if unit:
        return Budget(number * _SECONDS[unit], None)
    if number > MOST_EVALUATIONS:
        raise UsageError(f"budget `{text}`: is more than {MOST_EVALUATIONS} evaluations; give e.g. 20")
    if number != int(number):
        raise UsageError(f"budget `{text}`: evaluations are whole; for a time write a unit, e.g. {text}s")
    return Budget(None, int(number))
