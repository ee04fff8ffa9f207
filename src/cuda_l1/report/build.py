"""A whole report: which tables it has, in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cuda_l1.config import Precision
from cuda_l1.errors import UsageError
from cuda_l1.report.cells import Table
from cuda_l1.report.entries import HEADLINE_PROTOCOLS, Entry, Sampled, Skipped
from cuda_l1.report.facts import facts
from cuda_l1.report.literature import published
from cuda_l1.report.sections import DEFAULT, Question, Section, sections
from cuda_l1.report.tables import evidence, headline, kernelbench, roofline, spread, techniques
from cuda_l1.report.tables.tasks import tasks

CLASSES: tuple[Precision, ...] = ("default", "fp32", "tf32")
"""The least exact classes that are shown side by side."""


@dataclass(frozen=True)
class Block:
    """Tables under one heading."""

    title: str
    tables: tuple[Table, ...]
    facts: tuple[str, ...] = ()
    """What was measured how, on what, when and with what; of a section."""


@dataclass(frozen=True)
class Report:
    """Sections as data, and as tables under headings."""

    sections: tuple[Section, ...]
    blocks: tuple[Block, ...]


def build(
    entries: Iterable[Entry],
    question: Question = DEFAULT,
    *,
    protocols: Sequence[str] = HEADLINE_PROTOCOLS,
    literature: bool = False,
    sampled: Sequence[Sampled] = (),
    skipped: Sequence[Skipped] = (),
) -> Report:
    """The report on these entries; it has no section where none is under one of `protocols`.

    `sampled`: what models answered, over which pass@k is taken; without it, over their candidates. `skipped`: tasks
    that runs did not judge, without those that have an entry.
    """
    kept = list(entries)
    found = sections(kept, question, protocols)
    classes = {name: sections(kept, replace(question, precision=name), protocols) for name in CLASSES}
    blocks = _side_by_side(found)
    for index, section in enumerate(found):
        same = {name: others[index] for name, others in classes.items()}
        blocks.append(Block(section.title, _with_rows(_tables(section, same, sampled)), facts(section)))
    if skipped:
        blocks.append(Block("Without a verdict", (evidence.skipped(skipped),)))
    if literature:
        blocks.append(Block("Published by others", tuple(published())))
    return Report(tuple(found), tuple(blocks))


def only(report: Report, name: str) -> Report:
    """The tables of that name alone, and no task rows. Raises UsageError that names the tables that there are."""
    known = dict.fromkeys(table.name for block in report.blocks for table in block.tables)
    if name not in known:
        raise UsageError(f"--table {name}: this report has no such table; it has {', '.join(known)}")
    kept = (replace(block, tables=tuple(t for t in block.tables if t.name == name)) for block in report.blocks)
    return Report((), tuple(block for block in kept if block.tables))


def _side_by_side(found: Sequence[Section]) -> list[Block]:
    tables = _with_rows(spread.side_by_side(found))
    return [Block("Place by place", tables)] if tables else []


def _tables(section: Section, by_precision: dict[Precision, Section], sampled: Sequence[Sampled]) -> list[Table]:
    return [
        headline.headline(section),
        spread.methods(section),
        spread.baselines(section),
        spread.configurations(section),
        headline.precisions(by_precision),
        kernelbench.fast(section),
        kernelbench.samples(section, sampled),
        roofline.rooflines(section),
        techniques.techniques(section),
        techniques.pairs(section),
        evidence.coverage(section),
        evidence.classes(section),
        evidence.findings(section),
        evidence.apart(section),
        tasks(section),
    ]


def _with_rows(tables: Sequence[Table]) -> tuple[Table, ...]:
    return tuple(table for table in tables if table.rows)
