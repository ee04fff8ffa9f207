"""A release replayed in steps: each goes on where the last one stopped, and leaves a table of what is known so far.

    PYTHONPATH=src python benchmarks/replay_release.py --release h100.json --device cuda --out DIR --deadline 500s

It drives `cuda-l1 replay --json` with the archive DIR/archive.sqlite; what is given behind `--` goes to that command.
DIR/replay.csv has a row per kernel, written as soon as both verdicts are there, DIR/replay.md the table and how often
each reason was given. Ctrl-C and the deadline end a step; running it again with the same DIR continues.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from csv_table import Row, Table
from cuda_l1.api.budget import parse_budget
from cuda_l1.report.markdown import table_lines
from cuda_l1.report.sections import natural
from cuda_l1.report.terminal import times
from provenance import PROVENANCE, commit, header, run, say, today, write_report

KEYS = ("release", "task", "column", "protocol", "ours")
FIGURES = ("published", "theirs", "theirs_speedup", "outcome", "precision_class", "speedup_eager")
BOUNDS = ("speedup_eager_low", "speedup_eager_high")
COLUMNS = (*KEYS, *FIGURES, *BOUNDS, "reference", "reasons", "why", "record", *PROVENANCE)
STOPPING_S = 20.0
"""What the command gets to end in after it was interrupted, out of the deadline."""


def main() -> int:
    options = _options()
    seconds = parse_budget(options.deadline).seconds if options.deadline else None
    table = Table(options.out / "replay.csv", COLUMNS, keys=len(KEYS))
    try:
        finished = replay(options, table, seconds)
    finally:
        write_report(options.out / "replay.md", report(table.rows()))
    say(f"{len(table.rows())} kernels in {table.path}{'' if finished else '; run it again to go on'}")
    return 0


def _options() -> argparse.Namespace:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--release", type=Path, required=True, help="the release's file")
    made.add_argument("--out", type=Path, required=True)
    made.add_argument("--device", default="auto")
    made.add_argument("--ours", default="final", choices=("final", "screen"))
    made.add_argument("--protocol", default="cuda-l1")
    made.add_argument("--column", default="custom")
    made.add_argument("--deadline", help="end this step after so long, e.g. 500s")
    made.add_argument("more", nargs="*", help="further options of `cuda-l1 replay`, behind --")
    return made.parse_args()


def replay(options: argparse.Namespace, table: Table, seconds: float | None) -> bool:
    """Writes a row for each kernel that is not there as it is; whether all were judged before the deadline."""
    known = {table.key(row): row for row in table.rows()}
    finished = False
    for line in _lines(_command(options), seconds):
        finished = finished or line["kind"] == "summary"
        if line["kind"] != "replay":
            continue
        row = row_of(line, options)
        if not _is_there(known.get(table.key(row)), row):
            table.append(row)
    return finished


def _command(options: argparse.Namespace) -> list[str]:
    named = {
        "--device": options.device,
        "--ours": options.ours,
        "--protocol": options.protocol,
        "--column": options.column,
        "--archive": options.out / "archive.sqlite",
    }
    words = [str(word) for pair in named.items() for word in pair]
    return [sys.executable, "-m", "cuda_l1.cli", "replay", str(options.release), "--json", *words, *options.more]


def _lines(command: Sequence[str], seconds: float | None) -> Iterator[dict[str, Any]]:
    """The objects that the command prints; it is interrupted when its time is over.

    Raises SystemExit with the command's code where it failed: 1 says only that no kernel stands.
    """
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    left = max(1.0, seconds - STOPPING_S) if seconds else None
    timer = threading.Timer(left, process.send_signal, [signal.SIGINT]) if left else None
    try:
        if timer:
            timer.start()
        assert process.stdout is not None
        yield from map(json.loads, process.stdout)
    finally:
        if timer:
            timer.cancel()
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            code = process.wait(STOPPING_S)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
    if code not in (0, 1, 130, -signal.SIGINT):
        raise SystemExit(code)


def row_of(line: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """A row from what the command says of a kernel."""
    theirs, ours, place = (line[name] or {} for name in ("theirs", "ours", "environment"))
    return {
        "release": options.release.stem,
        "task": line["task"],
        "column": line["column"],
        "protocol": options.protocol,
        "ours": options.ours,
        "published": line["published"],
        "theirs": theirs.get("outcome"),
        "theirs_speedup": theirs.get("speedup"),
        "outcome": ours.get("outcome"),
        "precision_class": ours.get("precision_class"),
        "speedup_eager": ours.get("speedup"),
        **{name: line[name] if ours.get("speedup") else None for name in BOUNDS},
        "reference": line["reference"] + (", differs" if line["reference_differs"] else ""),
        "reasons": "; ".join(reason["why"] for reason in line["reasons"]),
        "why": line["fault"] or "; ".join(f"{reason['why']}: {reason['evidence']}" for reason in line["reasons"]),
        "record": ours.get("record"),
        **{name: place.get(name) for name in ("device_name", "torch", "driver", "rung", "rules")},
        "commit": commit(),
        "date": today(),
    }


def _is_there(row: Row | None, new: dict[str, Any]) -> bool:
    """Whether the file has this row already: the same verdict of ours. A task that is at fault has none."""
    return row is not None and row["record"] == (new["record"] or "")


def report(rows: Sequence[Row]) -> str:
    """The table and the reasons, as Markdown."""
    reasons = Counter(reason for row in rows for reason in row["reasons"].split("; ") if reason)
    ran = sum(bool(row["speedup_eager"]) for row in rows)
    lines = header("Published kernels, replayed", list(rows))
    lines += [f"{len(rows)} kernels, {ran} accepted by our protocol.", ""]
    lines += table_lines(("reason", "kernels"), [(name, str(count)) for name, count in reasons.most_common()])
    columns = ("task", "published", "their harness", "ours", "class", "why they differ")
    lines += ["", *table_lines(columns, [_cells(row) for row in sorted(rows, key=_order)])]
    return "\n".join(lines) + "\n"


def _order(row: Row) -> tuple[bool, list[tuple[int, str]]]:
    """By level and number; kernels without a published figure last."""
    return not row["published"], natural(row["task"])


def _cells(row: Row) -> tuple[str, ...]:
    theirs, ours = (_figure(row[f]) or row[o] for f, o in (("theirs_speedup", "theirs"), ("speedup_eager", "outcome")))
    other = " (another reference)" if row["published"] and row["reference"].endswith("differs") else ""
    published = f"{_figure(row['published']) or '-'}{other}"
    return row["task"], published, theirs, ours, row["precision_class"] or "-", row["reasons"]


def _figure(value: str) -> str:
    return times(float(value)) if value else ""


if __name__ == "__main__":
    run(main)
