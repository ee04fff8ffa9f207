"""Where a command is to write: looked at before any work is done.

What cannot be written there is the person's to change, exit code 2; a disk that is full is the machine's, 3.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cuda_l1.errors import InfrastructureError, UsageError

_DATABASE = b"SQLite format 3"
"""What an archive begins with."""


def check_file(option: str, path: Path, *, reads: Sequence[Path] = (), is_archive: bool = False) -> None:
    """Raises UsageError, or InfrastructureError for a full disk, where the file of an option cannot be written, or
    holds what would be lost: an archive, where none is to be written, or what the command `reads`."""
    with _faults(option, path, path.parent):
        if path.is_file() and not is_archive:
            with path.open("rb") as file:
                if file.read(len(_DATABASE)) == _DATABASE:
                    raise UsageError(f"{option} {path}: is a database, an archive perhaps; name a new file")
            if any(source.exists() and path.samefile(source) for source in reads):
                raise UsageError(f"{option} {path}: is what the command reads; name a new file")
        if path.is_dir():
            raise UsageError(f"{option} {path}: is a folder; name a file")
        if not path.parent.is_dir():
            raise UsageError(f"{option} {path}: there is no folder {path.parent}")
        if not path.exists() or path.is_file():
            _try_in(path.resolve().parent)
        elif not os.access(path, os.W_OK):  # a device or a pipe
            raise UsageError(f"{option} {path}: cannot be written to; name a file elsewhere")


def check_folder(option: str, path: Path) -> None:
    """The same for a folder that is written into, and made where it is not there."""
    with _faults(option, path, path):
        there = next(one for one in (path.resolve(), *path.resolve().parents) if one.exists())
        if not there.is_dir():
            raise UsageError(f"{option} {path}: {there} is a file; name a folder elsewhere")
        _try_in(there)


def check_replaced_folder(option: str, path: Path) -> None:
    """The same for a folder that is made beside what is there, and put in its place."""
    with _faults(option, path, path.parent):
        _try_in(path.resolve().parent)


def _try_in(folder: Path) -> None:
    """Permissions say less: who may do all may still not write to a disk that is mounted for reading."""
    tempfile.TemporaryFile(dir=folder).close()


@contextmanager
def _faults(option: str, path: Path, folder: Path) -> Iterator[None]:
    from cuda_l1.archive.faults import disk_is_full

    try:
        yield
    except OSError as error:
        if disk_is_full(error):
            raise InfrastructureError(f"{option} {path}: {error.strerror}; free some space there") from error
        why = error.strerror or error
        raise UsageError(
            f"{option} {path}: the folder {folder} cannot be written to ({why}); name a place elsewhere"
        ) from error
