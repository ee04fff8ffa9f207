"""What techniques do, over many candidates of many tasks: how often they are right, what adding one changes, and pairs.

Adding a technique is seen where a task has candidates with exactly the same techniques but for that one; no technique
at all is eager. All figures are medians over tasks, of each task's geometric means, so that a task with a thousand
candidates has one vote. Their bounds are the medians of the tasks' bounds: how exactly they are known on these tasks,
not how much they depend on which tasks are there.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cuda_l1.ratios import from_log, log_between
from cuda_l1.report.ablation import NOISE
from cuda_l1.report.cells import Ratio

Techniques = frozenset[str]


@dataclass(frozen=True)
class Tried:
    """One candidate: its task, what it is made with, and its speed-up against eager where it counts."""

    task: Hashable
    techniques: Techniques
    speedup: Ratio | None
    """None: it failed, or does not count."""


@dataclass(frozen=True)
class TechniqueEffect:
    """One technique, over every candidate that is made with it."""

    technique: str
    tried: int
    tasks: int
    right: int
    """Candidates that count."""
    speedup: float | None
    """Of those that count, against eager."""
    gain: Ratio | None
    """What adding it does; with bounds where each verdict behind it has an interval."""
    compared: int
    """Tasks on which that was seen."""
    hurt: int
    """Tasks of these on which adding it makes it slower by more than is uncertain."""

    @property
    def verdict(self) -> str:
        """`adds`, `no effect`, `harms`, `looks good, harms`, `not decided`, or `not compared`."""
        if self.gain is None:
            return "not compared"
        if _is_less(self.gain):
            return "looks good, harms" if (self.speedup or 0.0) > NOISE else "harms"
        if _is_more(self.gain):
            return "adds"
        return "no effect" if _is_one(self.gain) else "not decided"


@dataclass(frozen=True)
class PairEffect:
    """Two techniques that were tried together, with each of them alone beside it."""

    first: str
    second: str
    tasks: int
    first_alone: Ratio
    """What adding the first does where the second is not."""
    second_alone: Ratio
    first_after: Ratio
    """What adding the first does where the second is already there."""
    second_after: Ratio
    synergy: Ratio
    """The speed-up together over the product of those alone: 1 where the effects multiply."""

    @property
    def verdict(self) -> str:
        """`multiply`, `overlap`, `harm each other`, `help each other`, `A opens B` (a gatekeeper), `only together`, or
        `not decided`."""
        if _is_less(self.synergy):
            return "harm each other" if _is_less(self.first_after) and _is_less(self.second_after) else "overlap"
        if not _is_more(self.synergy):
            return "multiply" if _is_one(self.synergy) else "not decided"
        opened = [
            (gate, other)
            for gate, other, alone, after in (
                (self.first, self.second, self.second_alone, self.second_after),
                (self.second, self.first, self.first_alone, self.first_after),
            )
            if not _is_more(alone) and _is_more(after)
        ]
        if len(opened) == 2:
            return "only together"
        return f"{opened[0][0]} opens {opened[0][1]}" if opened else "help each other"


def technique_effects(tried: Iterable[Tried]) -> list[TechniqueEffect]:
    """One for each technique, those tried most often first."""
    found = list(tried)
    by_task = _speedups(found)
    names = {name for one in found for name in one.techniques}
    made = [_effect(name, [one for one in found if name in one.techniques], by_task) for name in names]
    return sorted(made, key=lambda effect: (-effect.tried, effect.technique))


def pair_effects(tried: Iterable[Tried]) -> list[PairEffect]:
    """Every pair with a task that shows neither, each and both, all else equal; the strongest synergy first."""
    squares: dict[tuple[str, str], list[list[_Log]]] = {}
    for known in _speedups(tried).values():
        names = sorted({name for techniques in known for name in techniques})
        for pair in itertools.combinations(names, 2):
            if found := _squares(known, *pair):
                squares.setdefault(pair, []).append([_mean(column) for column in zip(*found, strict=True)])
    made = [_pair(pair, per_task) for pair, per_task in squares.items()]
    return sorted(made, key=lambda one: (-abs(math.log(one.synergy.value)), one.first, one.second))


class _Log(NamedTuple):
    """A ratio as its logarithm, and the half-width of its interval where there is one."""

    value: float
    half: float | None

    def over(self, other: _Log) -> _Log:
        """The quotient; errors of what was measured apart add in quadrature."""
        known = self.half is not None and other.half is not None
        return _Log(self.value - other.value, math.hypot(self.half or 0.0, other.half or 0.0) if known else None)


def _log(ratio: Ratio) -> _Log:
    known = ratio.low is not None and ratio.high is not None
    return _Log(math.log(ratio.value), log_between(ratio.low or 1.0, ratio.high or 1.0) / 2 if known else None)


def _mean(logs: Sequence[_Log]) -> _Log:
    halves = [log.half for log in logs if log.half is not None]
    half = math.hypot(*halves) / len(logs) if len(halves) == len(logs) else None
    return _Log(statistics.fmean(log.value for log in logs), half)


def _middle(logs: Sequence[_Log]) -> Ratio | None:
    """The median over tasks, between the medians of their bounds: these hold it wherever each task's do."""
    if not logs:
        return None
    middle = from_log(statistics.median(log.value for log in logs))
    known = [(log.value, log.half) for log in logs if log.half is not None]
    if len(known) < len(logs):
        return Ratio(middle)
    low, high = (from_log(statistics.median(value + sign * half for value, half in known)) for sign in (-1, 1))
    return Ratio(middle, low, high)


def _bounds(ratio: Ratio) -> tuple[float, float]:
    """Its interval; without one what two screens of one candidate may differ by."""
    if ratio.low is None or ratio.high is None:
        return ratio.value / NOISE, ratio.value * NOISE
    return ratio.low, ratio.high


def _is_less(ratio: Ratio) -> bool:
    return _bounds(ratio)[1] < 1.0


def _is_more(ratio: Ratio) -> bool:
    return _bounds(ratio)[0] > 1.0


def _is_one(ratio: Ratio) -> bool:
    """Of one that is neither more nor less: known to be within NOISE, or no better known than that."""
    low, high = _bounds(ratio)
    return ratio.low is None or (low >= 1 / NOISE and high <= NOISE)


_Known = Mapping[Techniques, _Log]
"""On one task, the speed-up of what is made with just these techniques."""


def _speedups(tried: Iterable[Tried]) -> dict[Hashable, _Known]:
    """By task; of several candidates with the same techniques the median, known as well as the least known of them."""
    values: dict[Hashable, dict[Techniques, list[_Log]]] = {}
    for one in tried:
        if one.speedup is not None:
            values.setdefault(one.task, {}).setdefault(one.techniques, []).append(_log(one.speedup))
    return {
        task: {techniques: _median(logs) for techniques, logs in known.items()} | {frozenset(): _Log(0.0, 0.0)}
        for task, known in values.items()
    }


def _median(logs: Sequence[_Log]) -> _Log:
    halves = [log.half for log in logs if log.half is not None]
    return _Log(statistics.median(log.value for log in logs), max(halves) if len(halves) == len(logs) else None)


def _effect(name: str, made_with: Sequence[Tried], by_task: Mapping[Hashable, _Known]) -> TechniqueEffect:
    right = [one for one in made_with if one.speedup is not None]
    tasks = {one.task for one in made_with}
    gains = [_mean(steps) for task in tasks if task in by_task and (steps := _steps(by_task[task], name))]
    own = [
        statistics.fmean(math.log(one.speedup.value) for one in right if one.task == task and one.speedup is not None)
        for task in {one.task for one in right}
    ]
    return TechniqueEffect(
        technique=name,
        tried=len(made_with),
        tasks=len(tasks),
        right=len(right),
        speedup=from_log(statistics.median(own)) if own else None,
        gain=_middle(gains),
        compared=len(gains),
        hurt=sum(_is_less(ratio) for gain in gains if (ratio := _middle([gain]))),
    )


def _steps(known: _Known, name: str) -> list[_Log]:
    """What adding `name` does on one task, for everything that was measured without and with it."""
    return [
        value.over(known[techniques - {name}])
        for techniques, value in known.items()
        if name in techniques and techniques - {name} in known
    ]


def _squares(known: _Known, first: str, second: str) -> Sequence[tuple[_Log, ...]]:
    """On one task, for each base measured without, with one, the other and both: the four steps between these, each of
    the two techniques alone and then after the other, and the synergy."""
    found = []
    for both in known:
        one, other, base = both - {second}, both - {first}, both - {first, second}
        if {first, second} <= both and one in known and other in known and base in known:
            first_alone, second_alone = known[one].over(known[base]), known[other].over(known[base])
            first_after, second_after = known[both].over(known[other]), known[both].over(known[one])
            found.append((first_alone, second_alone, first_after, second_after, first_after.over(first_alone)))
    return found


def _pair(pair: tuple[str, str], per_task: Sequence[Sequence[_Log]]) -> PairEffect:
    columns = (_middle(column) for column in zip(*per_task, strict=True))
    first_alone, second_alone, first_after, second_after, synergy = (one for one in columns if one is not None)
    return PairEffect(*pair, len(per_task), first_alone, second_alone, first_after, second_after, synergy)
