"""Companions of reductions as Triton statements on tiles of [XBLOCK, RBLOCK], each lane with a centre of its own.

`n` is the number of such a reduction in its plan; tile `a{n}` holds its sums and `c{n}` the lanes' centres.
"""

from __future__ import annotations

from collections.abc import Callable

from cuda_l1.proposers.techniques.codegen.companions import Companion, Exponentials, Spread

Masked = Callable[[str, str], str]
"""A tile, and what it has where no element is."""


def first_centre(companion: Companion) -> str:
    """Of a lane that has seen nothing."""
    return "0.0" if isinstance(companion, Spread) else 'float("-inf")'


def step(companion: Companion, n: int, tile: str, kind: str, low: str, masked: Masked) -> list[str]:
    """Statements that take in one more block, `tile`, of those from element `low` on."""
    if isinstance(companion, Spread):
        number = f"((start - {low}) // RBLOCK + 1)"
        return [
            f"d{n} = {masked(f'{tile} - c{n}', '0.0')}",
            f"e{n} = d{n} * (tl.full([1, 1], 1.0, {kind}) / {number})",
            f"c{n} = c{n} + e{n}",
            f"a{n} = a{n} + d{n} * (d{n} - e{n})",
        ]
    return [
        f"d{n} = {masked(tile, first_centre(companion))}",
        f"e{n} = larger(c{n}, d{n})",
        f"a{n} = a{n} * {_power(f'c{n}', f'e{n}')} + {masked(_power(f'd{n}', f'e{n}'), '0.0')}",
        f"c{n} = e{n}",
    ]


def lanes(n: int, low: str, high: str) -> str:
    """How many of the elements from `low` to `high` each lane has seen."""
    return f"n{n} = tl.maximum(({high} - {low} - tl.arange(0, RBLOCK)[None, :] + RBLOCK - 1) // RBLOCK, 0)"


def about(companion: Companion, n: int, sums: str, own: str, centre: str) -> str:
    """Sums about centres of their own, moved to one that they share."""
    if isinstance(companion, Spread):
        return f"{sums} + n{n} * ({own} - {centre}) * ({own} - {centre})"
    return f"{sums} * {_power(own, centre)}"


def last_term(companion: Companion | None, centre: str) -> str:
    """What a finished sum is added to: about an infinite maximum there is none."""
    return f" + ({centre} - {centre})" if isinstance(companion, Exponentials) else ""


def _power(value: str, peak: str) -> str:
    """exp(value - peak), and 1 for the peak itself where it is infinite."""
    return f"tl.where({value} == {peak}, 1.0, libdevice.exp({value} - {peak}))"
