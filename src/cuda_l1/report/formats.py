"""A report as text: Markdown, CSV, or JSON lines."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from cuda_l1.report import markdown
from cuda_l1.report.build import Report
from cuda_l1.report.cells import Cell, plain
from cuda_l1.report.tables.tasks import task_fields


def as_markdown(report: Report) -> str:
    """All tables under their headings."""
    lines = ["# Report", ""]
    for block in report.blocks:
        lines += [f"## {markdown.escaped(block.title)}", "", *markdown.listed(block.facts)]
        for table in block.tables:
            lines += markdown.rendered(table)
    return "\n".join(lines).rstrip() + "\n"


def as_csv(report: Report) -> str:
    """One row per place, protocol, task and method; an empty cell is a figure that there is none of."""
    return _csv([fields for section in report.sections for fields in task_fields(section)])


def table_as_csv(report: Report, name: str) -> str:
    """The tables of that name, of all sections under one another, each row with its section.

    A figure that has parts (bounds, a total) has a column for each. Empty where there is no such table.
    """
    rows: list[dict[str, Any]] = []
    names: dict[str, dict[str, None]] = {"section": {"section": None}}
    for block in report.blocks:
        for table in (table for table in block.tables if table.name == name):
            for row in table.rows:
                cells = {column: _parts(column, cell) for column, cell in zip(table.columns, row.cells, strict=True)}
                for column, parts in cells.items():
                    names.setdefault(column, {}).update(dict.fromkeys(parts))
                rows.append(
                    {"section": block.title} | {key: part for parts in cells.values() for key, part in parts.items()}
                )
    every = dict.fromkeys(name for parts in names.values() for name in parts)
    return _csv([every | row for row in rows])


def _parts(column: str, cell: Cell) -> dict[str, Any]:
    """The parts of a cell as `COLUMN`, `COLUMN_low`, `COLUMN_total`, ..."""
    value = plain(cell)
    first, *others = parts = value if isinstance(value, dict) else {"value": value}
    return {column: parts[first], **{f"{column}_{part}": parts[part] for part in others}}


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def as_objects(report: Report) -> Iterator[dict[str, Any]]:
    """JSON objects: every task row (`kind` is `task`), then every table with its cells as values (`table`)."""
    for section in report.sections:
        for fields in task_fields(section):
            yield {"kind": "task", **fields}
    for block in report.blocks:
        for table in block.tables:
            yield {
                "kind": "table",
                "section": block.title,
                "name": table.name,
                "title": table.title,
                "columns": list(table.columns),
                "rows": [[plain(cell) for cell in row.cells] for row in table.rows],
                "measured": all(row.measured for row in table.rows),
                "notes": list(table.notes),
            }
