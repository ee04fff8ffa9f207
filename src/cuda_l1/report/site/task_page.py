"""One task's page: figures, the best candidate beside the reference, its evidence, and everything that was tried.

Where a task has no candidate, its baselines have what else the candidate has, the fastest in its place.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from cuda_l1 import scoring
from cuda_l1.report.build import Report
from cuda_l1.report.cells import Row, Table
from cuda_l1.report.entries import Entry
from cuda_l1.report.sections import Section
from cuda_l1.report.site import plots
from cuda_l1.report.site.source import coloured, diff
from cuda_l1.report.tables.tasks import task_table
from cuda_l1.report.versus import Standing, against, outcome_of, over, standings_on
from cuda_l1.texts import many
from cuda_l1.types import Evaluation, Record, Task

RecordOf = Callable[[str], Record | None]
"""The whole record of an id, samples included; None where the archive has lost it."""
AnalysisOf = Callable[[Record], str]
"""What a model wrote of a record's candidate; empty where there is nothing."""


@dataclass(frozen=True)
class Shown:
    """A candidate, or a baseline, whose evidence a page shows, and the section that it stands in."""

    section: Section
    standing: Standing
    record: Record


def page(
    task: Task, report: Report, record_of: RecordOf, analysis_of: AnalysisOf
) -> tuple[dict[str, Any], Record | None]:
    """What the template of a task needs, and the record of what stands beside the reference, if any."""
    here = [(section, view) for section in report.sections for view in section.views if view.task.sha == task.sha]
    candidates = [
        (section, one)
        for section, view in here
        for one in standings_on(section, view, section.systems)
        if one.confirmed
    ]
    baselines = [(section, one) for section, view in here for one in standings_on(section, view, section.baselines)]
    shown = _best(candidates or baselines, record_of)
    others = [] if candidates else [made for section, one in baselines if (made := _shown(section, one, record_of))]
    context = {
        "title": here[0][1].name,
        "task": task,
        "flags": sorted({flag for _, view in here for flag in view.flags}),
        "tables": [task_table(section, [view], section.title) for section, view in here if view.entries],
        "history": _history([(section, entry) for section, view in here for entry in view.entries]),
        "reference": coloured(task.source),
        "best": _beside_the_reference(shown, task, analysis_of) if shown else None,
        "others": [_evidence(other) for other in others if shown and other.record.id != shown.record.id],
    }
    return context, shown.record if shown else None


def _best(found: Sequence[tuple[Section, Standing]], record_of: RecordOf) -> Shown | None:
    """The fastest that counts in the first section with one; where none counts anywhere, of the first section."""
    if not found:
        return None
    first = next((section for section, one in found if one.counts), found[0][0])
    return _shown(*max(((s, o) for s, o in found if s is first), key=lambda pair: _value(*pair)), record_of)


def _shown(section: Section, one: Standing, record_of: RecordOf) -> Shown | None:
    record = record_of(one.entry.record_id)
    return Shown(section, one, record) if record else None


def _value(section: Section, one: Standing) -> float:
    ratio = against(section, one)
    return ratio.value if ratio else 0.0


def _beside_the_reference(shown: Shown, task: Task, analysis_of: AnalysisOf) -> dict[str, Any]:
    candidate, entry = shown.record.candidate, shown.standing.entry
    is_baseline = shown.standing.method.kind == "baseline"
    return {
        **_evidence(shown),
        "kind": _kind("baseline" if is_baseline else "candidate", shown.standing),
        "label": candidate.label,
        "techniques": () if is_baseline else entry.techniques,
        "tagged": entry.tagged,
        "rationale": candidate.rationale,
        "analysis": "" if is_baseline else analysis_of(shown.record),
        "bench": _as_baseline(shown) if is_baseline else "",
        "source": coloured(candidate.source),
        "diff": diff(task.source, candidate.source),
    }


def _kind(what: str, one: Standing) -> str:
    if not one.counts:
        return f"No {what} counts; the latest"
    return f"{'Fastest' if what == 'baseline' else 'Best'} {what}"


def _as_baseline(shown: Shown) -> str:
    """What asks `cuda-l1 bench` for this one; the name is whatever a record says."""
    return f"--baselines {shlex.quote(shown.standing.method.name)} --protocol {shown.section.protocol}"


def _evidence(shown: Shown) -> dict[str, Any]:
    """What one verdict rests on."""
    record, evaluation = shown.record, shown.record.evaluation
    return {
        "title": f"{shown.standing.method.name}, {shown.section.title}, {outcome_of(shown.standing)}",
        "record_id": record.id,
        "run": record.run,
        "time": f"{record.time:%Y-%m-%d %H:%M} UTC",
        "plots": _samples(evaluation),
        "trials": _trials(evaluation),
        "findings": _findings(evaluation),
    }


def _samples(evaluation: Evaluation) -> list[Markup]:
    """For each clock and opponent, the samples of all pairs."""
    made = []
    for timing in evaluation.timings:
        samples = {
            "candidate": [value for pair in timing.pairs for value in pair.candidate_us],
            timing.opponent: [value for pair in timing.pairs for value in pair.opponent_us],
        }
        made.append(
            plots.distributions(
                samples, f"{timing.clock} clock against {timing.opponent}, {many(len(timing.pairs), 'pair')}"
            )
        )
    return made


TRIALS = ("trial", "error", "reference's own error", "bound", "class")


def _trials(evaluation: Evaluation) -> Table:
    """Every trial: how far candidate and reference lay from the float64 oracle, and what was allowed."""
    found = evaluation.correctness
    if found is None:
        return Table("trials", "No correctness evidence", TRIALS, (), (evaluation.detail,))
    rows = [
        Row((trial.kind, _small(trial.error), _small(trial.reference_error), _small(trial.bound), trial.passed_class))
        for trial in found.trials
    ]
    note = f"Truth: {found.oracle}. Class {found.precision_class}; the task's is {found.task_class}."
    return Table("trials", "Correctness trials", TRIALS, tuple(rows), (note,))


def _small(value: float | None) -> str | None:
    return None if value is None else f"{value:.2e}"


def _findings(evaluation: Evaluation) -> Table:
    rows = tuple(Row((finding.check, finding.severity, finding.evidence)) for finding in evaluation.findings)
    return Table("findings", "Findings", ("check", "severity", "evidence"), rows)


def _history(tried: list[tuple[Section, Entry]]) -> Table:
    """Everything that was tried, oldest first."""
    rows = []
    for section, entry in sorted(tried, key=lambda pair: pair[1].time):
        view = next(view for view in section.views if view.task.sha == entry.task.sha)
        evaluation = entry.evaluation
        methods = ", ".join(method.name for method in entry.methods)
        outcome = evaluation.told(counts=entry.counts(section.precision))
        outcome += f" ({evaluation.precision_class})" if evaluation.precision_class else ""
        detail = evaluation.detail or scoring.why_not(evaluation, section.precision, is_eager=entry.is_eager)
        cells = (f"{entry.time:%Y-%m-%d %H:%M}", methods, entry.label, section.title, outcome)
        rows.append(Row((*cells, over(section, view, entry, "eager"), detail or None, entry.record_id[:12])))
    columns = ("time", "method", "technique", "where", "outcome", "vs eager", "detail", "record")
    return Table("history", "Everything that was tried", columns, tuple(rows))
