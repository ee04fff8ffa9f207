"""Turns what a database or a file system raises into one line: whose fault it is, where, and what to do."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from cuda_l1.errors import ArchiveError, CudaL1Error, InfrastructureError, UsageError

_FULL = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}
_PLACE = {
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.ELOOP,
    errno.ENAMETOOLONG,
}
"""What says that nothing can be written there: the person's to change."""


@contextmanager
def database_faults(where: str) -> Iterator[None]:
    """Translates errors of SQLAlchemy and its drivers, with `where` naming the archive.

    Raises ArchiveError (locked, damaged, unreachable, its disk full or failing) or UsageError (no archive, or one that
    cannot be written to).
    """
    try:
        yield
    except DBAPIError as error:
        raise translate(error.orig or error, where) from error
    except sqlite3.Error as error:
        raise translate(error, where) from error
    except PoolTimeoutError as error:
        raise ArchiveError(f"{where}: no free connection; close other iterators or threads and try again") from error
    except SQLAlchemyError as error:
        raise ArchiveError(f"{where}: {one_line(error)}") from error


@contextmanager
def file_faults(path: Path) -> Iterator[None]:
    """Translates OSError on `path`: disk full to InfrastructureError, a place that cannot be written to to UsageError,
    anything else to ArchiveError."""
    try:
        yield
    except OSError as error:
        if disk_is_full(error):
            raise InfrastructureError(
                f"{path}: {error.strerror or 'the disk is full'}; free some space and run the same command again, "
                "nothing written is lost"
            ) from error
        kind = UsageError if error.errno in _PLACE else ArchiveError
        raise kind(f"{path}: {error.strerror or error}; check the path and its permissions") from error


def disk_is_full(error: OSError) -> bool:
    """Whether it says so; `shutil` has an error of its own for many files, which quotes those of each."""
    is_quoted = isinstance(error, shutil.Error) and any(os.strerror(number) in str(error) for number in _FULL)
    return error.errno in _FULL or is_quoted


def translate(error: BaseException, where: str) -> CudaL1Error:
    """The error of our tree for one that a database driver raised."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return ArchiveError(f"{where} is locked by another process; wait for it to end, or name another archive")
    if name.startswith("SQLITE_FULL"):
        return ArchiveError(
            f"{where}: disk full; free some space and run the same command again, what was recorded is kept"
        )
    if name.startswith("SQLITE_IOERR"):
        return ArchiveError(
            f"{where}: the disk failed or is full ({name}); check it and run again, what was recorded is kept"
        )
    if name == "SQLITE_NOTADB":
        return UsageError(f"{where} is not an archive; name another file, or move this one away to start a new one")
    if name.startswith("SQLITE_CORRUPT"):
        return ArchiveError(f"{where} is damaged ({one_line(error)}); restore a copy, or merge what `sqlite3` recovers")
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")):
        return UsageError(f"{where} cannot be opened for writing; check the path and its permissions")
    return ArchiveError(f"{where}: {one_line(error)}")


def one_line(error: BaseException) -> str:
    """The first line of an error's text, or its class where it has none."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
