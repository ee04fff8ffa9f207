"""Logs: files with one JSON object a line, which a process may be killed in the midst of writing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cuda_l1.archive.faults import file_faults


def append_line(path: Path, row: Mapping[str, Any]) -> None:
    """One more line of JSON values; one that a kill has torn is ended first. Whole lines only, also from several
    processes. Raises as `file_faults`."""
    line = json.dumps(row).encode() + b"\n"
    with file_faults(path), path.open("ab+") as file:
        size = file.seek(0, os.SEEK_END)
        is_torn = size > 0 and os.pread(file.fileno(), 1, size - 1) != b"\n"
        file.write((b"\n" if is_torn else b"") + line)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects, oldest first, without torn lines and what is no object; none where there is no file. Raises as
    `file_faults`."""
    if not path.exists():
        return
    with file_faults(path), path.open("rb") as file:
        for line in file:
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(row, dict):
                yield row
