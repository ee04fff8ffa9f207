"""A CSV file that grows by one durable line per finished item, so that an interrupted script goes on where it stopped.

Several processes may append to one file. A line that a kill has torn is left out when reading.
"""

from __future__ import annotations

import csv
import fcntl
import io
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from cuda_l1.errors import UsageError

Row = dict[str, str]
LATER = ("rules",)
"""Columns that files from before there was one may lack."""


class Table:
    """Rows with fixed columns, told apart by the first `keys` of them; of two rows with one key the later counts."""

    def __init__(self, path: Path, columns: Sequence[str], *, keys: int) -> None:
        """Makes the file with its header where there is none; one that lacks LATER columns gets them, empty in the rows
        that it has. Raises UsageError when its columns are others."""
        self.path, self.columns = path, tuple(columns)
        self._keys = self.columns[:keys]
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _create(path, _line(self.columns))
        if _columns(path) == tuple(name for name in self.columns if name not in LATER) != self.columns:
            _widen(path, self.columns)
        if _columns(path) != self.columns:
            raise UsageError(f"{path}: its columns are not those that this script writes; give another --out")

    def key(self, row: Mapping[str, object]) -> tuple[str, ...]:
        """What tells a row from others."""
        return tuple(_text(row[name]) for name in self._keys)

    def rows(self) -> list[Row]:
        """Every row once, in the order of first appearance; values as text, "" where there is none."""
        return read_rows(self.path, self._keys)

    def append(self, values: Mapping[str, object]) -> None:
        """Writes one row: None as nothing, floats with six digits, lines joined. KeyError for an unknown column."""
        unknown = values.keys() - set(self.columns)
        if unknown:
            raise KeyError(f"no such columns: {', '.join(sorted(unknown))}")
        line = _line([_text(values.get(name)) for name in self.columns])
        fd = os.open(self.path, os.O_RDWR | os.O_APPEND)
        try:
            torn = os.pread(fd, 1, os.fstat(fd).st_size - 1) != b"\n"
            os.write(fd, (b"\n" if torn else b"") + line)
            os.fsync(fd)
        finally:
            os.close(fd)


def read_rows(path: Path, keys: Sequence[str]) -> list[Row]:
    """The rows of a file that a `Table` wrote."""
    with path.open(newline="") as file:
        whole = [row for row in csv.DictReader(file) if None not in row and None not in row.values()]
    return list({tuple(row[name] for name in keys): row for row in whole}.values())


def _columns(path: Path) -> tuple[str, ...]:
    with path.open(newline="") as file:
        return tuple(next(csv.reader(file), []))


def _widen(path: Path, columns: Sequence[str]) -> None:
    """The same rows under more columns. Nobody appends meanwhile: whoever opens the file as well waits here first."""
    with path.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if _columns(path) == tuple(columns):  # another process did it
            return
        rows = read_rows(path, _columns(path))
        fd, fresh = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        with os.fdopen(fd, "wb") as file:
            file.writelines(
                _line(each) for each in (columns, *([row.get(name, "") for name in columns] for row in rows))
            )
            file.flush()
            os.fsync(fd)
        os.chmod(fresh, 0o644)
        os.replace(fresh, path)


def _create(path: Path, header: bytes) -> None:
    """The file appears with its header in it, whoever else creates it at the same moment."""
    fd, fresh = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        os.write(fd, header)
        os.fchmod(fd, 0o644)
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        os.close(fd)
        os.unlink(fresh)


def _line(values: Sequence[str]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(values)
    return buffer.getvalue().encode()


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return " ".join(str(value).split())
