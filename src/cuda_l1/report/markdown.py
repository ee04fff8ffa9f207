"""Markdown in which nothing that a record holds can break out of its cell."""

from __future__ import annotations

from collections.abc import Sequence

from cuda_l1.report.cells import Row, Table, text


def table_lines(head: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    """A table, line by line; bars, tags and line ends in a cell are written so that they stay text in it."""
    rows = [[escaped(cell) for cell in row] for row in (head, *body)]
    return ["| " + " | ".join(row) + " |" for row in (rows[0], ["---"] * len(head), *rows[1:])]


def escaped(cell: str) -> str:
    """A cell's text without meaning of its own in a table."""
    return " ".join(cell.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").splitlines())


def rendered(table: Table) -> list[str]:
    """A table with its heading and notes; what we did not measure is set in italics."""
    body = [_cells(row) for row in table.rows]
    return [f"### {escaped(table.title)}", "", *table_lines(table.columns, body), "", *listed(table.notes)]


def listed(sentences: Sequence[str]) -> list[str]:
    """A point for each, and an empty line; nothing where there is none."""
    return [*(f"- {escaped(sentence)}" for sentence in sentences), *([""] if sentences else [])]


def _cells(row: Row) -> list[str]:
    shown = [text(cell) for cell in row.cells]
    return shown if row.measured else [f"*{cell}*" for cell in shown]
