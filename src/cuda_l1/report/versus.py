"""Denominators: a candidate against eager, against each baseline, and against the best baseline of its class.

A figure is taken from the candidate's own verdict where it was timed against that baseline in one lease of the device,
and else from two verdicts of the same place and protocol, each against eager.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cuda_l1 import scoring
from cuda_l1.ratios import from_log, log_between, within_floats
from cuda_l1.report.cells import Ratio
from cuda_l1.report.entries import EAGER, Entry, Method
from cuda_l1.report.figures import ratio_of
from cuda_l1.report.sections import Section, TaskView
from cuda_l1.types import Clock


@dataclass(frozen=True)
class Best:
    """A figure against the best baseline."""

    baseline: str
    ratio: Ratio
    best_of: tuple[str, ...]
    """The baselines that it was the fastest of."""


@dataclass(frozen=True)
class Standing:
    """How a method does on a task."""

    view: TaskView
    method: Method
    attempts: int
    """Its candidates with a verdict."""
    entry: Entry
    """The candidate that stands for it: its fastest that counts, or the latest where none does."""
    counts: bool
    """Right, unsuspected, of a class that counts."""
    confirmed: bool = True
    """False: it was screened here and nothing of it went to a final, so that what it hands out is the reference."""
    held_back: bool = False
    """Slower than eager on the other clock: no figure of it exceeds 1."""


def standings(section: Section, method: Method, views: Sequence[TaskView]) -> list[Standing]:
    """How the method does on each of the tasks that it has a verdict on."""
    return [made for view in views if (made := standing(section, view, method)) is not None]


def standings_on(section: Section, view: TaskView, methods: Sequence[Method]) -> list[Standing]:
    """How each of the methods does that has a verdict on the task."""
    return [made for method in methods if (made := standing(section, view, method)) is not None]


def standing(section: Section, view: TaskView, method: Method) -> Standing | None:
    """How the method does on the task; None where it has no verdict.

    A system that screened candidates and took none to a final stands in a final section with the reference: leaving
    the task out would average over its wins alone.
    """
    tried = view.of(method)
    if not tried:
        return _unconfirmed(section, view, method)
    held = [entry for entry in tried if entry.counts(section.precision)]
    timed = [entry for entry in held if _eager(entry, section.clock) is not None]
    winners = timed if method.kind == "baseline" else [e for e in timed if not _slower(e, section.clock)]
    if not timed:
        return Standing(view, method, len(tried), (held or tried)[-1], counts=bool(held))
    chosen = max(winners or timed, key=lambda entry: _value(entry, section.clock))
    return Standing(view, method, len(tried), chosen, counts=True, held_back=not winners)


def _unconfirmed(section: Section, view: TaskView, method: Method) -> Standing | None:
    screened = view.screens_of(method) if method.kind == "system" else []
    if not screened:
        return None
    counts = any(entry.counts(section.precision) for entry in screened)
    return Standing(view, method, len(screened), screened[-1], counts=counts, confirmed=False)


def against(section: Section, one: Standing, baseline: str = EAGER) -> Ratio | None:
    """Its figure over a baseline; None where nothing counts or the two were not measured alike."""
    if not one.confirmed:
        return reference_over(section, one.view, baseline) if one.counts else None
    return _held(one, over(section, one.view, one.entry, baseline))


def against_best(section: Section, one: Standing) -> Best | None:
    """Its figure over the best baseline; None where nothing counts or the two were not measured alike."""
    if not one.confirmed:
        return None
    best = over_best(section, one.view, one.entry)
    ratio = _held(one, best.ratio) if best else None
    return Best(best.baseline, ratio, best.best_of) if best and ratio else None


def outcome_of(one: Standing) -> str:
    """How it ended, in words."""
    if not one.confirmed:
        return "not confirmed"
    return one.entry.evaluation.told(counts=one.counts)


def _held(one: Standing, ratio: Ratio | None) -> Ratio | None:
    if ratio is None or not one.counts:
        return None
    return _at_most_one(ratio) if one.held_back else ratio


def _slower(entry: Entry, clock: Clock) -> bool:
    return scoring.slower_on_other_clock(entry.evaluation, clock)


def _value(entry: Entry, clock: Clock) -> float:
    found = _eager(entry, clock)
    return found.value if found else 0.0


def _at_most_one(ratio: Ratio) -> Ratio:
    low, high = (None if bound is None else min(bound, 1.0) for bound in (ratio.low, ratio.high))
    return Ratio(min(ratio.value, 1.0), low, high)


def over(section: Section, view: TaskView, entry: Entry, baseline: str) -> Ratio | None:
    """The entry's speed-up over a baseline; None where they were not measured alike, or the baseline does not count."""
    if baseline not in view.baselines:
        return None
    if Method("baseline", baseline) in entry.methods:
        return Ratio(1.0, 1.0, 1.0)
    if baseline == EAGER:
        return _eager(entry, section.clock)
    direct = entry.evaluation.timing(baseline, section.clock)
    if direct:
        return ratio_of(direct)
    return quotient(_eager(entry, section.clock), _theirs(section, view, baseline))


def reference_over(section: Section, view: TaskView, baseline: str) -> Ratio | None:
    """The same for the task's own module as it is."""
    if baseline not in view.baselines:
        return None
    return (
        Ratio(1.0, 1.0, 1.0) if baseline == EAGER else quotient(Ratio(1.0, 1.0, 1.0), _theirs(section, view, baseline))
    )


def is_measured(section: Section, view: TaskView, baseline: str) -> bool:
    """Whether a right candidate has a figure over it here: eager and the best baseline are timed in every verdict."""
    if baseline not in view.baselines:
        return False
    return baseline in (EAGER, scoring.best_baseline(view.baselines)) or _theirs(section, view, baseline) is not None


def _theirs(section: Section, view: TaskView, baseline: str) -> Ratio | None:
    """A baseline's own figure against eager under this protocol."""
    found = (entry for entry in view.of(Method("baseline", baseline)) if entry.evaluation.accepted)
    return next((_eager(entry, section.clock) for entry in found), None)


def over_best(section: Section, view: TaskView, entry: Entry) -> Best | None:
    """The entry's speed-up over the fastest baseline that is known to count here.

    The verdict's own figure stands when the fastest was among those that it was chosen from, eager's where eager turned
    out faster still. Where the fastest was never measured as this candidate was, there is no figure: a slower one must
    not stand in for it.
    """
    known, fastest = tuple(view.baselines), scoring.best_baseline(view.baselines)
    if fastest is None:
        return None
    own = entry.evaluation.best_baseline_timing(section.clock)
    if own is None or not (own.opponent in known or section.precision == "default"):
        ratio = over(section, view, entry, fastest)
        return Best(fastest, ratio, known) if ratio else None
    best_of = tuple(dict.fromkeys((*own.best_of, *known)))
    if fastest not in (EAGER, *own.best_of):
        ratio = over(section, view, entry, fastest)
        return Best(fastest, ratio, best_of) if ratio else None
    measured = {own.opponent: ratio_of(own), EAGER: over(section, view, entry, EAGER)}
    name, ratio = min(((n, r) for n, r in measured.items() if r), key=lambda pair: pair[1].value)
    return Best(name, ratio, best_of)


def _eager(entry: Entry, clock: Clock) -> Ratio | None:
    """Eager against itself is 1 by definition; what its own verdict says of that is noise."""
    if entry.is_eager:
        return Ratio(1.0, 1.0, 1.0)
    timing = entry.evaluation.timing(EAGER, clock)
    return ratio_of(timing) if timing else None


def quotient(ours: Ratio | None, theirs: Ratio | None) -> Ratio | None:
    """Ours over theirs, both against the same; half-widths of independent log intervals add in quadrature."""
    if ours is None or theirs is None:
        return None
    value, halves = within_floats(ours.value / theirs.value), [_half_width(ratio) for ratio in (ours, theirs)]
    if halves[0] is None or halves[1] is None:
        return Ratio(value)
    half, middle = math.hypot(halves[0], halves[1]), math.log(value)
    return Ratio(value, from_log(middle - half), from_log(middle + half))


def _half_width(ratio: Ratio) -> float | None:
    """Of the log interval; None where there is none."""
    if ratio.low is None or ratio.high is None:
        return None
    return log_between(ratio.low, ratio.high) / 2
