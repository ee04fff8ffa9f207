"""Where a figure comes from: command, commit, date, machine; and what the benchmark scripts' command lines share."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from cuda_l1.api.budget import parse_budget
from cuda_l1.cli.boundary import exit_code
from cuda_l1.errors import UsageError
from cuda_l1.evaluator.environment import cpu_name
from cuda_l1.types import Environment

ROOT = Path(__file__).parents[1]
NOTES = "## Notes"
"""The heading below which a report belongs to people."""
COMMIT = "CUDA_L1_COMMIT"
"""Environment variable that names the commit where the sources lie without their repository."""


def commit() -> str:
    """The commit of the sources, `+changes` after it when tracked files differ from it; `unknown` where none is."""
    named = os.environ.get(COMMIT)
    if named:
        return named
    head = _git("rev-parse", "HEAD")
    if head is None:
        return "unknown"
    return head[:12] + ("+changes" if _git("status", "--porcelain", "--untracked-files=no") else "")


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def today() -> str:
    """The date, UTC."""
    return datetime.now(UTC).date().isoformat()


def cpu_columns() -> dict[str, object]:
    """The columns of a row that was measured without an evaluator."""
    return {"device_name": cpu_name(), "commit": commit(), "date": today()}


def columns_of(environment: Environment) -> dict[str, object]:
    """The columns that say where and from what a row was measured."""
    return {
        "device_name": environment.device_name,
        "torch": environment.torch,
        "driver": environment.driver,
        "rung": environment.rung,
        "rules": environment.rules,
        "commit": commit(),
        "date": today(),
    }


PROVENANCE = ("device_name", "torch", "driver", "rung", "rules", "commit", "date")


def header(title: str, rows: list[dict[str, str]], command: str | None = None) -> list[str]:
    """The Markdown lines that begin a report: every device, version, commit and day that its rows come from.

    `command`: what the report says it was measured with, in Markdown, where that is not the command that now runs. Rows
    from before there was a column for the rules name none.
    """

    def every(column: str) -> str:
        return ", ".join(dict.fromkeys(row[column] for row in rows if row.get(column))) or "none"

    return [
        f"# {title}",
        "",
        f"- command: {command or f'`{command_line()}`'}",
        f"- device: {every('device_name')}; driver: {every('driver')}; sandbox rung: {every('rung')}",
        f"- torch: {every('torch')}; rules of the verdicts: {every('rules')}",
        f"- commit: {every('commit')}; date: {every('date')}",
        "",
    ]


def command_of(page: Path) -> str | None:
    """What a report's header says that it was measured with, for `header`; None where there is no such page."""
    text = page.read_text() if page.exists() else ""
    found = re.search(r"^- command: (.*(?:\n  .*)*)", text, re.MULTILINE)
    return found[1] if found else None


def write_report(page: Path, text: str) -> None:
    """Writes a report; what an earlier one holds from a line `## Notes` on was added by people, and is kept."""
    _, found, notes = (page.read_text() if page.exists() else "").partition(f"\n{NOTES}\n")
    page.write_text(text.rstrip() + "\n" + (f"\n{NOTES}\n{notes}" if found else ""))


def command_line() -> str:
    """What a person typed, the interpreter by its plain name."""
    return shlex.join(["python", os.path.relpath(sys.argv[0]), *sys.argv[1:]])


# ── command lines ─────────────────────────────────────────────────────────────────────────────────


def plain_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with what every script takes: `--out`."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--out", type=Path, required=True, help="folder for results; what it holds is not measured again")
    return made


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with what every script takes that opens evaluators: `--device`, `--out`, `--deadline`."""
    made = plain_parser(description)
    made.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    made.add_argument("--deadline", metavar="TIME", help="start nothing that may not end within this long, e.g. 9m")
    return made


class Deadline:
    """How much time is left; without a text, all there is."""

    def __init__(self, text: str | None) -> None:
        """Raises UsageError for a text that is no time."""
        seconds = parse_budget(text).seconds if text else float("inf")
        if seconds is None:
            raise UsageError(f"--deadline {text}: give a time, e.g. 540s or 9m")
        self._end = time.monotonic() + seconds

    def allows(self, seconds: float) -> bool:
        """Whether something that may take this long still fits."""
        return time.monotonic() + seconds <= self._end


def run(main: Callable[[], int | None]) -> None:
    """Runs a script's main function and exits: one line for a mistake, and for an interruption or SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(exit_code(main, "what was finished is in the --out folder; the same command goes on from there"))


def say(line: str) -> None:
    """A line of talk."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
