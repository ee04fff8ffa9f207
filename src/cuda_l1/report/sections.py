"""Records made comparable: one section per place, protocol and edition of the tasks, and in it one view per task.

Figures of different sections are never put into one mean; a report shows them side by side.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from cuda_l1 import scoring
from cuda_l1.config import Precision
from cuda_l1.report.editions import Edition, editions
from cuda_l1.report.entries import EAGER, HEADLINE_PROTOCOLS, Entry, Method
from cuda_l1.report.roofline import Ceilings, ceilings_of
from cuda_l1.types import Clock, Environment, Outcome, Task, Work, unsound


@dataclass(frozen=True)
class Question:
    """What the figures of a report are about."""

    clock: Clock | None = None
    """None: the objective of each device."""
    precision: Precision = "default"
    """The least exact class that counts; `default` is each task's own."""


DEFAULT = Question()


UNBUILT = "does-not-build"
"""The flag of a task whose own module does not."""


@dataclass(frozen=True)
class TaskView:
    """One task in one place under one protocol: the latest record of every candidate."""

    task: Task
    name: str
    """What it is called, unlike any other of the place."""
    flags: tuple[str, ...]
    """What the judge said of the task, in any of its verdicts here, and UNBUILT."""
    entries: tuple[Entry, ...]
    screened: tuple[Entry, ...]
    """Of a final section: what was screened in this place. It stands in no figure."""
    baselines: Mapping[str, float]
    """Baselines of a class that counts, by name, with their speed-up against eager: from here where they were measured
    under this protocol, else under another. They say which is the best, and stand in no figure."""
    work: Work | None = None
    """What a call of its reference asks of the device, where any verdict here counted it."""

    @property
    def unsound(self) -> tuple[str, ...]:
        """Why figures of this task mean nothing; empty where they do."""
        return tuple(sorted((*unsound(self.flags), *{UNBUILT}.intersection(self.flags))))

    @property
    def is_sound(self) -> bool:
        """Whether figures of this task mean anything."""
        return not self.unsound

    @property
    def level(self) -> str:
        """The group that it is summed up in: suite and, where it has one, level."""
        return self.task.suite if self.task.level is None else f"{self.task.suite} level {self.task.level}"

    def of(self, method: Method) -> list[Entry]:
        """The method's candidates, oldest first; of a baseline the latest text, which is what it is now."""
        found = [entry for entry in self.entries if method in entry.methods]
        return found[-1:] if method.kind == "baseline" else found

    def screens_of(self, method: Method) -> list[Entry]:
        """The method's screened candidates, oldest first."""
        return [entry for entry in self.screened if method in entry.methods]


@dataclass(frozen=True)
class Section:
    """What was measured in one place under one protocol, on one edition of the tasks."""

    label: str
    """The device's name, and what tells this place from another of the same device."""
    place: Environment
    protocol: str
    edition: str
    """Empty, or which of several texts of the same names its tasks have (`report.editions`)."""
    clock: Clock
    precision: Precision
    views: tuple[TaskView, ...]
    """Every task of the place and edition, with or without a verdict under this protocol; by suite, level and name."""
    ceilings: Ceilings | None = None
    """What the device was measured to do at the most, in any verdict of the place that is reported on."""

    @property
    def title(self) -> str:
        """The section's heading."""
        return ", ".join(filter(None, (self.label, self.protocol, f"{self.clock} clock", self.edition)))

    @cached_property
    def sound(self) -> tuple[TaskView, ...]:
        """The tasks that aggregates are over."""
        return tuple(view for view in self.views if view.is_sound)

    @cached_property
    def baselines(self) -> tuple[Method, ...]:
        """Baselines with a verdict, eager first."""
        found = {m for view in self.views for e in view.entries for m in e.methods if m.kind == "baseline"}
        return tuple(sorted(found, key=lambda method: (method.name != EAGER, method.name)))

    @cached_property
    def denominators(self) -> tuple[str, ...]:
        """Names of the baselines that count on some task, eager first, which everything is timed against."""
        found = {name for view in self.views for name in view.baselines}
        return tuple(sorted(found, key=lambda name: (name != EAGER, name)))

    @cached_property
    def systems(self) -> tuple[Method, ...]:
        """Everybody else with a verdict."""
        found = {m for view in self.views for e in view.entries for m in e.methods if m.kind != "baseline"}
        return tuple(sorted(found))

    def groups(self) -> dict[str, list[TaskView]]:
        """The sound tasks, all of them first and then by level, where there are several levels."""
        levels: dict[str, list[TaskView]] = {}
        for view in self.sound:
            levels.setdefault(view.level, []).append(view)
        return {"all": list(self.sound), **(levels if len(levels) > 1 else {})}


def sections(
    entries: Iterable[Entry], question: Question = DEFAULT, protocols: Sequence[str] = HEADLINE_PROTOCOLS
) -> list[Section]:
    """One section for each place, edition and protocol with a verdict, by the places' labels."""
    kept = sorted(entries, key=lambda entry: entry.time)
    by_place: dict[str, list[Entry]] = {}
    every: dict[str, list[Entry]] = {}
    for entry in kept:
        every.setdefault(entry.evaluation.environment.key, []).append(entry)
    for entry in latest_of_each(kept):
        by_place.setdefault(entry.evaluation.environment.key, []).append(entry)
    labels = place_labels([found[0].evaluation.environment for found in by_place.values()])
    made = []
    for key in sorted(by_place, key=lambda key: natural(labels[key])):
        here, told = by_place[key], editions(entry.task for entry in every[key])
        ceilings = ceilings_of(every[key])
        for edition in sorted({told[entry.task.sha].edition for entry in here}):
            same = [entry for entry in here if told[entry.task.sha].edition == edition]
            there = {entry.evaluation.protocol for entry in same}
            for protocol in (protocol for protocol in protocols if protocol in there):
                clock = question.clock or same[0].evaluation.default_clock
                views = _views(same, told, protocol, clock, question.precision)
                place = same[0].evaluation.environment
                made.append(Section(labels[key], place, protocol, edition, clock, question.precision, views, ceilings))
    return made


def latest_of_each(entries: Iterable[Entry]) -> list[Entry]:
    """Of several records of one candidate in one place under one protocol the latest, with all who wrote the text.

    Oldest first.
    """
    latest: dict[tuple[str, str, str], Entry] = {}
    written: dict[str, dict[Method, None]] = {}
    for entry in sorted(entries, key=lambda entry: entry.time):
        written.setdefault(entry.candidate_id, {}).update(dict.fromkeys(entry.methods))
        latest[entry.candidate_id, entry.evaluation.environment.key, entry.evaluation.protocol] = entry
    found = sorted(latest.values(), key=lambda entry: entry.time)
    return [_with_methods(entry, tuple(written[entry.candidate_id])) for entry in found]


def _with_methods(entry: Entry, methods: tuple[Method, ...]) -> Entry:
    return entry if entry.methods == methods else replace(entry, methods=methods)


def _views(
    here: Sequence[Entry], told: Mapping[str, Edition], protocol: str, clock: Clock, precision: Precision
) -> tuple[TaskView, ...]:
    by_task: dict[str, list[Entry]] = {}
    for entry in here:
        by_task.setdefault(entry.task.sha, []).append(entry)
    views = [_view(found, told[sha].name, protocol, clock, precision) for sha, found in by_task.items()]
    views.sort(key=lambda view: (view.task.suite, view.task.level or 0, natural(view.task.name), view.task.sha))
    return tuple(views)


def _view(found: Sequence[Entry], name: str, protocol: str, clock: Clock, precision: Precision) -> TaskView:
    flags = {flag for entry in found for flag in entry.evaluation.task_flags}
    eager = [entry for entry in found if entry.is_eager]
    if eager and eager[-1].evaluation.outcome is Outcome.BUILD_FAILED:
        flags.add(UNBUILT)
    is_final = protocol == "final"
    return TaskView(
        task=found[0].task,
        name=name,
        flags=tuple(sorted(flags)),
        entries=tuple(entry for entry in found if entry.evaluation.protocol == protocol),
        screened=tuple(entry for entry in found if is_final and entry.evaluation.protocol == "screen"),
        baselines=_ranking(found, protocol, clock, precision),
        work=next((entry.evaluation.work for entry in reversed(found) if entry.evaluation.work), None),
    )


def _ranking(found: Sequence[Entry], protocol: str, clock: Clock, precision: Precision) -> dict[str, float]:
    """Eager is the denominator of everything: it counts unless its own verdict says that it fails or is less exact."""
    ranked = {EAGER: 1.0}
    for entry in sorted(found, key=lambda entry: entry.evaluation.protocol == protocol):  # last is latest
        for method in entry.methods:
            if method.kind != "baseline":
                continue
            speedup = scoring.speedup(entry.evaluation, clock, is_eager=method.name == EAGER)
            if not entry.counts(precision) or speedup is None:
                ranked.pop(method.name, None)
            else:
                ranked[method.name] = speedup
    return ranked


_DETAILS = ("torch", "cuda", "driver", "lane", "rung", "rules")


def place_labels(places: Sequence[Environment]) -> dict[str, str]:
    """A label for each place, by its key: the device's name, and in which of its details places of that name differ."""
    labels = {}
    for place in places:
        same = [other for other in places if other.device_name == place.device_name]
        differing = [name for name in _DETAILS if len({getattr(other, name) for other in same}) > 1]
        told = ", ".join(f"{name} {getattr(place, name)}" for name in differing)
        labels[place.key] = f"{place.device_name} ({told})" if told else place.device_name
    return labels


def natural(name: str) -> list[tuple[int, str]]:
    """A sort key by which `2_x` comes before `10_x`."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
