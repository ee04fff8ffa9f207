"""Task by task: a table for people, and rows with everything for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cuda_l1.report.cells import Cell, Ratio, Row, Table
from cuda_l1.report.figures import ratio_fields
from cuda_l1.report.sections import Section, TaskView
from cuda_l1.report.tables.roofline import roofline_fields
from cuda_l1.report.versus import Best, Standing, against, against_best, outcome_of, standings_on
from cuda_l1.types import Clock, other_clock

SHOWN = ("task", "method", "technique", "outcome", "class", "vs eager", "vs best baseline", "best baseline", "flags")

EDITION = (
    "`scaled tasks`: at smaller sizes than their suite's. `edition 2`: texts whose names other texts bear that were "
    "judged here before: another checkout's shapes, another dtype. They stand in no mean with these."
)


def tasks(section: Section) -> Table:
    """Each task with how every system does on it; one that no system was asked about with its baselines."""
    found = [
        standings_on(section, view, section.systems) or standings_on(section, view, section.baselines)
        for view in section.views
    ]
    return _table(section, "Tasks", [one for ones in found for one in ones])


def task_table(section: Section, views: Sequence[TaskView], title: str) -> Table:
    """How all methods do on some of the tasks."""
    methods = (*section.systems, *section.baselines)
    return _table(section, title, [one for view in views for one in standings_on(section, view, methods)])


def _table(section: Section, title: str, found: Sequence[Standing]) -> Table:
    notes = (EDITION,) if section.edition else ()
    return Table("tasks", title, SHOWN, tuple(_row(section, one) for one in found), notes)


def _row(section: Section, one: Standing) -> Row:
    best = against_best(section, one)
    shown = (
        one.view.name,
        one.method.name,
        *(_measured(section, one) if one.confirmed else (None, outcome_of(one), None, None)),
        best.ratio if best else None,
        best.baseline if best else None,
        ", ".join(one.view.flags) or None,
    )
    return Row(shown)


def _measured(section: Section, one: Standing) -> tuple[Cell, ...]:
    evaluation = one.entry.evaluation
    return one.entry.label, outcome_of(one), evaluation.precision_class, against(section, one)


# ── rows for programs ─────────────────────────────────────────────────────────────────────────────


def task_fields(section: Section) -> list[dict[str, Any]]:
    """One dictionary per task and method with a verdict, baselines included; the same names in each, JSON values."""
    methods = (*section.systems, *section.baselines)
    return [_fields(section, one) for view in section.views for one in standings_on(section, view, methods)]


def _fields(section: Section, one: Standing) -> dict[str, Any]:
    task = one.view.task
    return {
        "suite": task.suite,
        "level": task.level,
        "task": task.name,
        "task_sha": task.sha,
        "method": one.method.name,
        "method_kind": one.method.kind,
        "confirmed": one.confirmed,
        "counts": one.counts and one.confirmed,
        **_figures(section.clock, against(section, one) if one.confirmed else None, against_best(section, one)),
        **_other_clock(section, one),
        **_evidence(section, one),
        **roofline_fields(section, one),
        "task_flags": " ".join(one.view.flags),
        "sound": one.view.is_sound,
        "attempts": one.attempts,
        "precision": section.precision,
        "protocol": section.protocol,
        "edition": section.edition,
        **section.place.model_dump(
            include={"device", "device_name", "lane", "rung", "rules", "torch", "cuda", "driver"}
        ),
    }


def _figures(clock: Clock, eager: Ratio | None, best: Best | None) -> dict[str, Any]:
    return {
        "clock": clock,
        **ratio_fields("speedup_eager", eager),
        **ratio_fields("speedup_best_baseline", best.ratio if best else None),
        "best_baseline": best.baseline if best else None,
        "best_of": " ".join(best.best_of) if best else None,
    }


def _other_clock(section: Section, one: Standing) -> dict[str, Any]:
    other = other_clock(section.clock)
    there = replace(section, clock=other)
    eager = against(there, one) if one.confirmed else None
    figures = _figures(other, eager, against_best(there, one))
    return {f"other_{name}": value for name, value in figures.items() if name != "best_of"}


_OF_ONE_VERDICT = (
    *("technique", "outcome", "detail", "candidate_us", "eager_us", "precision_class", "task_class", "findings"),
    *("record", "run", "time"),
)


def _evidence(section: Section, one: Standing) -> dict[str, Any]:
    """What stands in one verdict; nothing where none was made under this protocol."""
    if not one.confirmed:
        return dict.fromkeys(_OF_ONE_VERDICT)
    entry, evaluation, correctness = one.entry, one.entry.evaluation, one.entry.evaluation.correctness
    timing = evaluation.timing(clock=section.clock)
    values = (
        *(entry.label, str(evaluation.outcome), evaluation.detail),
        *((timing.candidate_us, timing.opponent_us) if timing else (None, None)),
        *(evaluation.precision_class, correctness.task_class if correctness else None),
        " ".join(f"{finding.check}({finding.severity})" for finding in evaluation.findings),
        *(entry.record_id, entry.run, entry.time.isoformat()),
    )
    return dict(zip(_OF_ONE_VERDICT, values, strict=True))
