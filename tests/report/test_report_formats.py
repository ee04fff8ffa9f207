"""The same report as Markdown, CSV and JSON; what records hold stays text in all of them."""

from __future__ import annotations

import csv
import io
import json

from report_fakes import entry, task

from cuda_l1.report.build import build
from cuda_l1.report.formats import as_csv, as_markdown, as_objects
from cuda_l1.report.markdown import table_lines
from cuda_l1.types import Origin

A = task("1_a", 1)
HOSTILE = Origin(proposer="llm", model="a|b <script>alert(1)</script>\n| c\x1b[0m")


def test_nothing_in_a_record_breaks_out_of_a_markdown_cell() -> None:
    shown = as_markdown(build([entry(A, 2.0, HOSTILE)]))
    assert "<script" not in shown and "\x1b" not in shown
    lines = [line for line in shown.splitlines() if "alert(1)" in line]
    assert lines and all(line.startswith("| ") and line.endswith(" |") and "a\\|b" in line for line in lines)


def test_a_bar_in_a_cell_stays_in_its_cell() -> None:
    assert table_lines(["a"], [["x|y\nz"]]) == ["| a |", "| --- |", "| x\\|y z |"]
    assert table_lines(["a"], [["x\\|y"]])[-1] == "| x\\\\\\|y |", "a backslash of its own frees no bar"


def test_published_figures_are_set_apart() -> None:
    shown = as_markdown(build([entry(A, 2.0)], literature=True))
    line = next(line for line in shown.splitlines() if "evolve: DeepSeek-R1" in line)
    assert line.startswith("| *evolve: DeepSeek-R1* | *1.41x* |")


def test_csv_reads_back() -> None:
    made = as_csv(build([entry(A, 2.0, HOSTILE), entry(A, 1.25, "compile"), entry(A, None, "eager")]))
    rows = {row["method"]: row for row in csv.DictReader(io.StringIO(made))}
    assert rows[HOSTILE.model or ""]["best_baseline"] == "compile"
    assert float(rows[HOSTILE.model or ""]["speedup_best_baseline"]) == 1.6
    assert rows["eager"]["speedup_eager"] == ""


def test_objects_are_json_with_figures_as_numbers() -> None:
    objects = list(as_objects(build([entry(A, 2.0)], literature=True)))
    assert json.loads(json.dumps(objects, allow_nan=False)) == objects
    headline = next(o for o in objects if o.get("name") == "headline")
    cells = dict(zip(headline["columns"], headline["rows"][0], strict=True))
    assert cells["geometric mean"] == {"value": 2.0, "low": None, "high": None}
    assert [o["measured"] for o in objects if o.get("section") == "Published by others"] == [False] * 3
    assert objects[0]["kind"] == "task" and objects[0]["speedup_best_baseline"] == 2.0
