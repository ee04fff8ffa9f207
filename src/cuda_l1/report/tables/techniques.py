"""Techniques over all tasks of a section: what each does, and which go together."""

from __future__ import annotations

from collections.abc import Iterable

from cuda_l1.report.ablation import NOISE
from cuda_l1.report.cells import Ratio, Row, Share, Table
from cuda_l1.report.entries import EAGER, Entry
from cuda_l1.report.sections import Section, TaskView
from cuda_l1.report.technique_effects import Tried, pair_effects, technique_effects
from cuda_l1.report.versus import over

WRITERS = {"named": "ours, by name", "tagged": "others' text, by rule"}
"""How it is known what a candidate is made with."""
PERCENT = round((NOISE - 1) * 100)
NOTES = (
    "Candidates on sound tasks. `speed-up`: of those that count, against eager. `gain`: what adding it does, where a "
    "task has candidates with the same techniques but for this one, or eager for none. Both are medians over tasks.",
    "`hurt`: tasks on which adding it costs more than is uncertain: its interval ends below 1, or, of screens, which "
    f"have none, it costs more than {PERCENT} %. `adding it` says the same of the gain; `no effect`: it is known to be "
    f"within {PERCENT} %. `looks good, harms`: candidates with it are faster than eager, and would be faster without.",
)
BY_RULE = (
    "By rule: docs/reports.md says what each tag is read from. A text may hold what no rule sees, which its tags then "
    "are credited with."
)
PAIR_NOTES = (
    "Tasks that have candidates with neither, each, and both, all else equal; medians over them. `synergy`: the "
    "speed-up together over the product of those alone.",
    "`A opens B`: B alone gains nothing that is certain (of screens, more than "
    f"{PERCENT} %), and does once A is there. `overlap`: together less than the product. `harm each other`: together "
    "slower than either alone.",
)
FINALS = "Finals are taken of winners alone: what a technique does on average stands in the screens' section."


def techniques(section: Section) -> Table:
    """One line for each technique: how often it was tried and right, its speed-up, what adding it does."""
    rows = [
        Row(
            (
                one.technique,
                writer,
                one.tried,
                one.tasks,
                Share(one.right, one.tried),
                Ratio(one.speedup) if one.speedup else None,
                one.gain,
                Share(one.hurt, one.compared) if one.compared else None,
                one.verdict,
            )
        )
        for kind, writer in WRITERS.items()
        for one in technique_effects(tried(section, kind))
    ]
    by_rule = (BY_RULE,) if any(WRITERS["tagged"] in row.cells for row in rows) else ()
    notes = (*NOTES, *by_rule, *((FINALS,) if section.protocol == "final" else ()))
    columns = ("technique", "candidates", "tried", "tasks", "accepted", "speed-up", "gain", "hurt", "adding it")
    return Table("techniques", "Techniques", columns, tuple(rows), notes)


def pairs(section: Section) -> Table:
    """One line for each pair of techniques that was tried together and apart."""
    rows = [
        Row(
            (
                one.first,
                one.second,
                writer,
                one.tasks,
                *(one.first_alone, one.second_alone, one.first_after, one.second_after, one.synergy),
                one.verdict,
            )
        )
        for kind, writer in WRITERS.items()
        for one in pair_effects(tried(section, kind))
    ]
    columns = (
        *("first", "second", "candidates", "tasks", "first alone", "second alone"),
        *("first after second", "second after first", "synergy", "together"),
    )
    return Table("technique_pairs", "Techniques in pairs", columns, tuple(rows), PAIR_NOTES)


def tried(section: Section, kind: str) -> list[Tried]:
    """The section's candidates on sound tasks whose techniques are known in this way (see WRITERS)."""
    return [
        Tried(entry.task.sha, frozenset(entry.techniques), _speedup(section, view, entry))
        for view, entry in _candidates(section)
        if entry.techniques and entry.tagged == (kind == "tagged")
    ]


def _candidates(section: Section) -> Iterable[tuple[TaskView, Entry]]:
    return ((view, entry) for view in section.sound for entry in view.entries if not entry.is_baseline)


def _speedup(section: Section, view: TaskView, entry: Entry) -> Ratio | None:
    return over(section, view, entry, EAGER) if entry.counts(section.precision) else None
