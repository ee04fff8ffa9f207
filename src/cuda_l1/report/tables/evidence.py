"""What lies behind the figures: how complete they are, how verdicts ended, what the checks saw, what stands apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import get_args

from cuda_l1.report.cells import Cell, Row, Share, Table
from cuda_l1.report.entries import NOT_REACHED, Entry, Method, Skipped
from cuda_l1.report.sections import Section, natural
from cuda_l1.report.versus import Standing, against, against_best, outcome_of, standing, standings
from cuda_l1.types import Outcome, PrecisionClass

FEW = 5
"""So many tasks that a run has not come to are named."""


def coverage(section: Section) -> Table:
    """Method: tasks with a verdict, with one that counts, and how the other candidates ended."""
    rows = []
    for method in (*section.baselines, *section.systems):
        found = [one for one in standings(section, method, section.views) if one.confirmed]
        entries = [entry for view in section.views for entry in view.of(method)]
        ends = Counter(entry.evaluation.outcome for entry in entries)
        failed = ", ".join(f"{ends[o]} {o}" for o in Outcome if ends[o] and o is not Outcome.ACCEPTED)
        suspected = sum(bool(entry.evaluation.suspects()) for entry in entries if entry.evaluation.accepted)
        right = Share(ends[Outcome.ACCEPTED], len(entries))
        done = Share(len(found), len(section.views))
        counted = Share(sum(one.counts for one in found), len(found))
        rows.append(Row((method.name, done, counted, right, suspected, failed or None)))
    return Table(
        name="coverage",
        title="Verdicts",
        columns=("method", "tasks with a verdict", "tasks with one that counts", "candidates accepted", "suspected",
                 "others"),
        rows=tuple(rows),
        notes=("Of all tasks of this section, sound or not.",),
    )  # fmt: skip


def findings(section: Section) -> Table:
    """Check x severity: candidates and tasks on which it saw something."""
    seen: dict[tuple[str, str], list[Entry]] = {}
    for entry in (entry for view in section.views for entry in view.entries):
        for key in dict.fromkeys((f.check, f.severity) for f in entry.evaluation.findings):
            seen.setdefault(key, []).append(entry)
    rank = {"reject": 0, "suspect": 1, "note": 2}
    rows = [
        Row((check, severity, len(found), len({entry.task.sha for entry in found}), _names(found)))
        for (check, severity), found in sorted(seen.items(), key=lambda item: (rank[item[0][1]], item[0][0]))
    ]
    return Table("findings", "Findings", ("check", "severity", "candidates", "tasks", "methods"), tuple(rows))


def _names(found: Sequence[Entry]) -> str:
    return ", ".join(dict.fromkeys(method.name for entry in found for method in entry.methods))


def classes(section: Section) -> Table:
    """Method x precision class of accepted candidates."""
    counted: dict[Method, Counter[str]] = {}
    for entry in (entry for view in section.views for entry in view.entries if entry.evaluation.accepted):
        for method in entry.methods:
            counted.setdefault(method, Counter())[entry.evaluation.precision_class or ""] += 1
    shown = [name for name in get_args(PrecisionClass) if any(counts[name] for counts in counted.values())]
    methods = [method for method in (*section.baselines, *section.systems) if method in counted]
    rows = [Row((method.name, *(counted[method][name] for name in shown))) for method in methods]
    return Table("classes", "Accepted candidates by precision class", ("method", *shown), tuple(rows))


def apart(section: Section) -> Table:
    """Tasks on which being right proves nothing: their figures are shown here and stand in no other table."""
    rows = []
    for view in (view for view in section.views if not view.is_sound):
        for method in section.systems or section.baselines:
            if one := standing(section, view, method):
                rows.append(Row((view.task.id, ", ".join(view.unsound), *_figures(section, one))))
    return Table(
        name="apart",
        title="Apart from all figures",
        columns=("task", "why", "method", "outcome", "vs eager", "vs best baseline"),
        rows=tuple(rows),
        notes=("`cuda-l1 tasks audit` says more about these tasks.",),
    )


def skipped(found: Sequence[Skipped]) -> Table:
    """Tasks that a run was to judge and did not; those that it has not come to in one line, where they are many."""
    rows: list[Row] = []
    for run, own in groupby(sorted(found, key=lambda one: (one.run, natural(one.name))), key=lambda one: one.run):
        told: list[Skipped] = []
        missing: list[Skipped] = []
        for one in own:
            (missing if one.why == NOT_REACHED else told).append(one)
        rows += [Row((one.name, run, one.why)) for one in (*told, *missing[:FEW])]
        if len(missing) > FEW:
            rows.append(Row((f"{len(missing) - FEW} more", run, NOT_REACHED)))
    note = "They stand in no figure, and in no n/N, of this report."
    return Table("skipped", "Tasks that a run was to judge and did not", ("task", "run", "why"), tuple(rows), (note,))


def _figures(section: Section, one: Standing) -> tuple[Cell, ...]:
    best = against_best(section, one)
    return one.method.name, outcome_of(one), against(section, one), best.ratio if best else None
