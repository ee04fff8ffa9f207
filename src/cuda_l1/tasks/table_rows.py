"""Rows of data sets that a person has on disk, as parquet, JSON lines or a JSON list; nothing is downloaded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cuda_l1.errors import TaskError

INSTALL = "pip install pyarrow"
_BATCH = 256


def rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where it stands, the row) of a file, or of all files of a folder in the order of their names.

    Raises TaskError: nothing there, a column of `columns` is missing, a file cannot be read, no `pyarrow`.
    """
    for file in _files(path):
        read = {".parquet": _parquet, ".json": _json_list}.get(file.suffix, _json_lines)
        for number, row in enumerate(read(file)):
            missing = [column for column in columns if column not in row]
            if missing:
                raise TaskError(f"{file}, row {number}: has no column {', '.join(missing)}; is it another data set?")
            yield f"{file.name}, row {number}", row


def stated_licence(path: Path) -> str | None:
    """What the front matter of the card beside the data says, README.md of a Hugging Face snapshot; or None."""
    folders = [path, *path.parents][:3] if path.is_dir() else [*path.parents][:3]
    for card in (folder / "README.md" for folder in folders):
        if card.is_file():
            front = re.match(r"---\n(.*?)\n---", card.read_text(errors="replace"), re.DOTALL)
            found = re.search(r"^license:\s*(\S+)", front[1], re.MULTILINE) if front else None
            return found[1] if found else None
    return None


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    for pattern in ("*.parquet", "*.jsonl", "*.json"):
        if found := sorted(path.rglob(pattern)):
            return found
    raise TaskError(
        f"{path}: no .parquet, .jsonl or .json file there; give the folder or file of the data set on this disk"
    )


def _parquet(file: Path) -> Iterator[dict[str, Any]]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise TaskError(f"{file}: reading parquet needs pyarrow, which is not here: {INSTALL}") from None
    try:
        with ParquetFile(file) as table:
            for batch in table.iter_batches(_BATCH):
                yield from batch.to_pylist()
    except (ArrowException, OSError, ValueError) as error:
        raise TaskError(f"{file}: is no parquet file that can be read: {' '.join(str(error).split())[:200]}") from error


def _json_list(file: Path) -> Iterator[dict[str, Any]]:
    """One list of objects, or what is JSON lines by another name."""
    try:
        found = json.loads(file.read_text(encoding="utf-8", errors="replace"))
    except (ValueError, RecursionError):
        yield from _json_lines(file)
        return
    for number, row in enumerate(found if isinstance(found, list) else [found]):
        if not isinstance(row, dict):
            raise TaskError(f"{file}: its entry {number} is not a JSON object")
        yield row


def _json_lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise TaskError(f"{file}:{number}: is not JSON: {error}") from error
            if not isinstance(row, dict):
                raise TaskError(f"{file}:{number}: is not a JSON object")
            yield row
