"""The roofline: how near a time is to what the device's memory and arithmetic allow for (Williams et al. 2009,
https://doi.org/10.1145/1498765.1498785).

Bytes and operations are the reference's, counted by the judge; the ceilings are what was measured in the place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from cuda_l1.types import Evaluation, PrecisionClass, Work


@dataclass(frozen=True)
class Ceilings:
    """The most that was ever measured in a place: a machine that others load measures less."""

    bytes_per_us: float
    flops_per_us: dict[str, float]

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


def ceilings_of(evaluations: Iterable[Evaluation]) -> Ceilings | None:
    """Of verdicts of one place; None where none of them measured any."""
    works = [evaluation.work for evaluation in evaluations if evaluation.work and evaluation.work.flops_per_us]
    if not works:
        return None
    names = {name for work in works for name in work.flops_per_us}
    most = {name: max(work.flops_per_us.get(name, 0.0) for work in works) for name in sorted(names)}
    return Ceilings(max(work.bytes_per_us for work in works), most)


def roofline(work: Work, ceilings: Ceilings, took_us: float, precision_class: PrecisionClass | None) -> Roofline | None:
    """Where a call that took `took_us` lies; None for a task that moves nothing."""
    if not work.moved_bytes or took_us <= 0:
        return None
    memory_us = work.moved_bytes / ceilings.bytes_per_us
    arithmetic_us = work.flops / ceilings.arithmetic(precision_class)
    least_us = max(memory_us, arithmetic_us)
    return Roofline(
        least_us=least_us,
        bound="memory" if memory_us >= arithmetic_us else "arithmetic",
        intensity=work.flops / work.moved_bytes,
        fraction=least_us / took_us,
        flops_per_us=work.flops / took_us,
    )
