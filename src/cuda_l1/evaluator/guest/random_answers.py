"""Answers of timed calls in tasks that differ with the seed, each to inputs of its own, beside answers of the reference
to the same inputs: one by one, and all together."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence

import torch

from .classes import unit_roundoff
from .oracle import Places, lattice, thinned

TIMED_DRAWS = 32, 128
"""Answers of the reference that one of a timed call is held against: at first, and before it is called wrong."""
FEW_DRAWS, LEAST_TOGETHER = 16, 5
"""Answers of the reference beside each in a first look at all together, and how many of them that needs."""
AT_MOST, DOUBT, DRIFT = 3.0, 3.0, 6.0
"""Standard deviations that one answer counts at most, since a rare event lies further out; what their sum, over the
root of their number, may come to before more of the reference's are asked for; and what it may come to by chance."""
ROUNDING = unit_roundoff(torch.bfloat16)
"""Of an answer's size: other arithmetic may move all of its elements so far."""
AGREEING = 1 << 13
"""The most elements of whole numbers of which it is asked how many are equal."""
Draw = Callable[[], list[torch.Tensor]]


class Beside:
    """One answer, and as many of the reference's to the same inputs as were asked for so far."""

    def __init__(self, answer: Sequence[torch.Tensor], draw: Draw, places: Sequence[Places] | None = None) -> None:
        """`draw` gives another answer of the reference's; `places`: the elements that are compared."""
        self._places = places or [lattice(tensor.shape) for tensor in answer]
        self._answer, self._draw = self._thin(answer), draw
        self._drawn: list[list[torch.Tensor]] = []

    def _thin(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return [thinned(tensor, at) for tensor, at in zip(tensors, self._places, strict=True)]

    def draw(self, count: int) -> None:
        """At least so many answers of the reference."""
        while len(self._drawn) < count:
            self._drawn.append(self._thin(self._draw()))

    def rows(self) -> Iterator[torch.Tensor]:
        """Of each tensor that has elements (1 + draws, elements), float64: its own, and the reference's."""
        for index, own in enumerate(self._answer):
            if own.numel():
                rows = torch.stack([own, *(run[index] for run in self._drawn)])
                yield rows.double().reshape(len(rows), -1)

    def stands_out(self) -> bool:
        """Whether it lies where those of the reference do not: by its distance from their mean, and by how much of that
        mean it holds."""
        for wanted in TIMED_DRAWS:  # a rare event may be missing among a few
            self.draw(wanted)
            dtypes = [tensor.dtype for tensor in self._answer if tensor.numel()]
            if not any(_is_outside(rows, 16 * unit_roundoff(d)) for rows, d in zip(self.rows(), dtypes, strict=True)):
                return False
        return True


def drift(answers: Sequence[Beside], patience_s: float) -> bool:
    """Whether all of them lie to one side of the reference's, though each alone might be one of these: they hold too
    little or too much of the reference's mean, or of what that has which is not the same for other inputs, lie too near
    to it or too far away, or share too few whole numbers with the reference's, or too many. Stops asking after
    `patience_s` when there are enough."""
    begin = time.monotonic()
    asked: list[Beside] = []
    for each in answers:
        if len(asked) >= LEAST_TOGETHER and time.monotonic() - begin > patience_s:
            break
        each.draw(FEW_DRAWS)
        asked.append(each)
    if len(asked) < LEAST_TOGETHER:
        return False
    for wanted in TIMED_DRAWS:  # few tell less of where the reference's lie
        so_far = _drift(asked)
        if so_far <= DOUBT or (so_far <= DRIFT and time.monotonic() - begin > patience_s):
            return False
        for each in asked:
            each.draw(wanted)
    return _drift(asked) > DRIFT


def _drift(answers: Sequence[Beside]) -> float:
    """The largest sum of deviations to one side, over the root of their number."""
    largest = 0.0
    for calls in zip(*(each.rows() for each in answers), strict=True):
        means = [rows[1:].mean(0) for rows in calls]
        rounding = [ROUNDING * float(mean.norm()) for mean in means]
        kinds = [*zip(*map(_distance_and_held, calls), strict=True)]
        if len({mean.shape for mean in means}) == 1:
            total = torch.stack(means).sum(0)
            others = [(total - mean) / (len(means) - 1) for mean in means]
            pairs = zip(calls, others, strict=True)
            kinds.append(tuple(_distance_and_held(rows - other)[1] for rows, other in pairs))
        found = [[*map(_deviations, values, rounding)] for values in kinds]
        if all(bool((rows == rows.round()).all()) for rows in calls):
            found.append([_deviations(_agreement(rows), 0.0) for rows in calls])
        largest = max([largest, *(abs(sum(off)) / math.sqrt(len(off)) for off in found)])
    return largest


def _deviations(values: torch.Tensor, rounding: float) -> float:
    """By how many standard deviations of the others, and of their mean, the first value lies above that."""
    others = values[1:]
    deviation = math.hypot(float(others.std()) * math.sqrt(1 + 1 / len(others)), rounding) + 1e-30
    off = (float(values[0]) - float(others.mean())) / deviation
    return max(-AT_MOST, min(AT_MOST, off)) if math.isfinite(off) else 0.0


def _distance_and_held(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Of each row: its distance from the mean of all but the first, less what follows from how few these are, and how
    much of that mean it holds."""
    mean = rows[1:].mean(0)
    size = mean.norm() + 1e-30
    distance = (rows - mean).norm(dim=1)
    held = (rows @ mean) / size
    count = len(rows) - 1  # each of them is part of the mean, which is taken out again
    distance[0] /= math.sqrt(1 + 1 / count)
    distance[1:] *= math.sqrt(count / (count - 1))
    held[1:] = (count * held[1:] - rows[1:].pow(2).sum(1) / size) / (count - 1)
    return distance, held


def _agreement(rows: torch.Tensor) -> torch.Tensor:
    """The share of each row's elements that are those of another row, of all but the first."""
    some = rows[:, torch.randperm(rows.shape[1], device=rows.device)[:AGREEING]]
    equal = torch.stack([(some == row).double().mean(1) for row in some[1:]])
    count = len(equal)
    equal[range(count), range(1, count + 1)] = 0.0  # with itself
    shares = equal.sum(0) / (count - 1)
    shares[0] *= (count - 1) / count
    return shares


def _is_outside(rows: torch.Tensor, roundoff: float) -> bool:
    slack = roundoff * float(rows[1:].mean(0).norm() + 1e-30)
    return any(_beyond(values, slack) for values in _distance_and_held(rows))


def _beyond(values: torch.Tensor, slack: float) -> bool:
    """Whether the first value lies three times as far from the mean of the others as the farthest of them."""
    one, others = float(values[0]), values[1:]
    middle = float(others.mean())
    low, high = (middle + 3 * (float(end) - middle) for end in (others.min(), others.max()))
    return not low - slack <= one <= high + slack
