"""What techniques do, over many candidates of many tasks: how often they are right, what adding one changes, and pairs.

Adding a technique is seen where a task has candidates with exactly the same techniques but for that one; no technique
at all is eager. All figures are medians over tasks, of each task's geometric means, so that a task with a thousand
candidates has one vote.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cuda_l1.report.ablation import NOISE

Techniques = frozenset[str]


@dataclass(frozen=True)
class Tried:
    """One candidate: its task, what it is made with, and its speed-up against eager where it counts."""

    task: Hashable
    techniques: Techniques
    speedup: float | None
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
    gain: float | None
    """What adding it does."""
    compared: int
    """Tasks on which that was seen."""
    hurt: int
    """Tasks of these on which adding it makes it slower by more than noise."""

    @property
    def verdict(self) -> str:
        """`adds`, `no effect`, `harms`, `looks good, harms`, or `not compared`."""
        if self.gain is None:
            return "not compared"
        if self.gain < 1 / NOISE:
            return "looks good, harms" if (self.speedup or 0.0) > NOISE else "harms"
        return "adds" if self.gain > NOISE else "no effect"


@dataclass(frozen=True)
class PairEffect:
    """Two techniques that were tried together, with each of them alone beside it."""

    first: str
    second: str
    tasks: int
    first_alone: float
    """What adding the first does where the second is not."""
    second_alone: float
    first_after: float
    """What adding the first does where the second is already there."""
    second_after: float
    synergy: float
    """The speed-up together over the product of those alone: 1 where the effects multiply."""

    @property
    def verdict(self) -> str:
        """`multiply`, `overlap`, `harm each other`, `help each other`, `A opens B` (a gatekeeper), `only together`."""
        if 1 / NOISE <= self.synergy <= NOISE:
            return "multiply"
        if self.synergy < 1.0:
            return "harm each other" if max(self.first_after, self.second_after) < 1 / NOISE else "overlap"
        opened = [
            (gate, other)
            for gate, other, alone, after in (
                (self.first, self.second, self.second_alone, self.second_after),
                (self.second, self.first, self.first_alone, self.first_after),
            )
            if alone <= NOISE < after
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
    squares: dict[tuple[str, str], list[list[float]]] = {}
    for known in _speedups(tried).values():
        names = sorted({name for techniques in known for name in techniques})
        for pair in itertools.combinations(names, 2):
            if found := _squares(known, *pair):
                squares.setdefault(pair, []).append([statistics.fmean(column) for column in zip(*found, strict=True)])
    made = [_pair(pair, per_task) for pair, per_task in squares.items()]
    return sorted(made, key=lambda one: (-abs(math.log(one.synergy)), one.first, one.second))


def _speedups(tried: Iterable[Tried]) -> dict[Hashable, dict[Techniques, float]]:
    """By task and techniques, the logarithm of the median speed-up of what is made with just these; eager is 0."""
    values: dict[Hashable, dict[Techniques, list[float]]] = {}
    for one in tried:
        if one.speedup is not None:
            values.setdefault(one.task, {}).setdefault(one.techniques, []).append(math.log(one.speedup))
    return {
        task: {techniques: statistics.median(logs) for techniques, logs in known.items()} | {frozenset(): 0.0}
        for task, known in values.items()
    }


def _effect(
    name: str, made_with: Sequence[Tried], by_task: Mapping[Hashable, Mapping[Techniques, float]]
) -> TechniqueEffect:
    right = [one for one in made_with if one.speedup is not None]
    tasks = {one.task for one in made_with}
    gains = [statistics.fmean(steps) for task in tasks if task in by_task and (steps := _steps(by_task[task], name))]
    own = [
        statistics.fmean(math.log(one.speedup) for one in right if one.task == task and one.speedup is not None)
        for task in {one.task for one in right}
    ]
    return TechniqueEffect(
        technique=name,
        tried=len(made_with),
        tasks=len(tasks),
        right=len(right),
        speedup=_median(own),
        gain=_median(gains),
        compared=len(gains),
        hurt=sum(gain < -math.log(NOISE) for gain in gains),
    )


def _median(logs: Sequence[float]) -> float | None:
    return math.exp(statistics.median(logs)) if logs else None


def _steps(known: Mapping[Techniques, float], name: str) -> list[float]:
    """What adding `name` does on one task, for everything that was measured without and with it."""
    return [
        value - known[techniques - {name}]
        for techniques, value in known.items()
        if name in techniques and techniques - {name} in known
    ]


def _squares(known: Mapping[Techniques, float], first: str, second: str) -> list[tuple[float, float, float, float]]:
    """On one task, for each base measured without, with one, the other and both: the four steps between these."""
    found = []
    for both in known:
        one, other, base = both - {second}, both - {first}, both - {first, second}
        if {first, second} <= both and one in known and other in known and base in known:
            start, end = known[base], known[both]
            found.append((known[one] - start, known[other] - start, end - known[other], end - known[one]))
    return found


def _pair(pair: tuple[str, str], per_task: Sequence[Sequence[float]]) -> PairEffect:
    first_alone, second_alone, first_after, second_after = (
        math.exp(statistics.median(column)) for column in zip(*per_task, strict=True)
    )
    synergy = math.exp(statistics.median(after - alone for alone, _, after, _ in per_task))
    return PairEffect(*pair, len(per_task), first_alone, second_alone, first_after, second_after, synergy)
