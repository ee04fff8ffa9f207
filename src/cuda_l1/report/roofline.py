"""The roofline: how near a time is to what the device's memory and arithmetic allow for (Williams et al. 2009,
https://doi.org/10.1145/1498765.1498785).

Bytes and operations are the reference's, counted by the judge; the ceilings are what was measured in the place, by a
copy and products or by eager itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from cuda_l1.ratios import FARTHEST
from cuda_l1.report.entries import EAGER, Entry
from cuda_l1.types import PrecisionClass, Work

MEMORY = "memory"


@dataclass(frozen=True)
class Ceilings:
    """The most that was ever measured in a place: a machine that others load measures less.

    Eager does just what the reference spells, so what it reaches is possible: where that is more than a copy or a
    product has shown, it is the ceiling.
    """

    bytes_per_us: float
    flops_per_us: dict[str, float]
    by_eager: tuple[str, ...] = ()
    """Which of them eager gave: `memory`, or names of classes."""

    def arithmetic(self, precision_class: PrecisionClass | None) -> float:
        """Operations in a microsecond in a class; of a class that was not measured, the most of any."""
        return self.flops_per_us.get(precision_class or "") or max(self.flops_per_us.values())


@dataclass(frozen=True)
class Roofline:
    """One time under the roof."""

    least_us: float
    """What moving the bytes, or doing the operations, takes at the ceilings: the larger of both."""
    bound: Literal["memory", "arithmetic"]
    intensity: float
    """Operations for each byte."""
    fraction: float
    """`least_us` over the time: 1 is the roof, more is algebra that needs less, or caches that hold the bytes."""
    flops_per_us: float
    """The reference's operations over the time."""


def ceilings_of(entries: Iterable[Entry]) -> Ceilings | None:
    """Of verdicts of one place; None where none of them measured any."""
    found = [(entry, entry.evaluation.work) for entry in entries if entry.evaluation.work]
    moved = [work.bytes_per_us for _, work in found if work.flops_per_us and _can_be_told(work.bytes_per_us)]
    most: dict[str, float] = {}
    for name, value in ((name, value) for _, work in found for name, value in work.flops_per_us.items()):
        if _can_be_told(value):
            most[name] = max(value, most.get(name, 0.0))
    if not moved or not most:
        return None
    measured = Ceilings(max(moved), dict(sorted(most.items())))
    return _raised(measured, [(work, one_us, name) for entry, work in found for one_us, name in _of_eager(entry)])


def _of_eager(entry: Entry) -> Iterator[tuple[float, PrecisionClass]]:
    """Every time that eager took in a verdict that was accepted, and its class."""
    evaluation = entry.evaluation
    if not evaluation.accepted or evaluation.correctness is None:
        return
    for timing in (timing for timing in evaluation.timings if timing.opponent == EAGER):
        times_us = (timing.opponent_us, *((timing.candidate_us,) if entry.is_eager else ()))
        yield from ((one_us, evaluation.correctness.task_class) for one_us in times_us if one_us > 0)


def _raised(measured: Ceilings, eager: Iterable[tuple[Work, float, PrecisionClass]]) -> Ceilings:
    """With what eager reached where that is more: (what a call asks for, the time it took, its class)."""
    moved, flops = measured.bytes_per_us, dict(measured.flops_per_us)
    higher: set[str] = set()
    for work, took_us, name in eager:
        bytes_per_us, flops_per_us = (_over(count, took_us) for count in (work.moved_bytes, work.flops))
        if bytes_per_us is not None and bytes_per_us > moved:
            moved = bytes_per_us
            higher.add(MEMORY)
        if flops_per_us is not None and flops_per_us > max(measured.arithmetic(name), flops.get(name, 0.0)):
            flops[name] = flops_per_us
            higher.add(name)
    return Ceilings(moved, flops, tuple(sorted(higher)))


def _can_be_told(value: float) -> bool:
    return 1 / FARTHEST <= value <= FARTHEST


def _over(count: float, divisor: float) -> float | None:
    """The quotient; None where it, or one of both, is no number that could be told."""
    if not (0 <= count <= FARTHEST and _can_be_told(divisor)):
        return None
    quotient = count / divisor
    return quotient if quotient == 0 or _can_be_told(quotient) else None


def roofline(work: Work, ceilings: Ceilings, took_us: float, precision_class: PrecisionClass | None) -> Roofline | None:
    """Where a call that took `took_us` lies; None for a task that moves nothing, and for figures beyond FARTHEST."""
    memory_us = _over(work.moved_bytes, ceilings.bytes_per_us)
    arithmetic_us = _over(work.flops, ceilings.arithmetic(precision_class))
    if not memory_us or arithmetic_us is None:
        return None
    least_us = max(memory_us, arithmetic_us)
    intensity = _over(work.flops, work.moved_bytes)
    fraction, flops_per_us = _over(least_us, took_us), _over(work.flops, took_us)
    if intensity is None or fraction is None or flops_per_us is None:
        return None
    return Roofline(
        least_us=least_us,
        bound="memory" if memory_us >= arithmetic_us else "arithmetic",
        intensity=intensity,
        fraction=fraction,
        flops_per_us=flops_per_us,
    )
