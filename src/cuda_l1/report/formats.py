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
        lines += [f"## {markdown.escaped(block.title)}", ""]
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
    for block in report.blocks:
        for table in (table for table in block.tables if table.name == name):
            for row in table.rows:
                rows.append({"section": block.title, **_flat(table.columns, row.cells)})
    every = dict.fromkeys(column for row in rows for column in row)
    return _csv([dict.fromkeys(every) | row for row in rows])


def _flat(columns: Sequence[str], cells: Sequence[Cell]) -> dict[str, Any]:
    """A row's cells by column; the parts of a cell as `COLUMN`, `COLUMN_low`, `COLUMN_total`, ..."""
    found: dict[str, Any] = {}
    for column, cell in zip(columns, cells, strict=True):
        value = plain(cell)
        parts = value if isinstance(value, dict) else {"value": value}
        first, *others = parts
        found |= {column: parts[first], **{f"{column}_{part}": parts[part] for part in others}}
    return found


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
