"""Opening a database: where it is, how SQLite is set up, and what refuses to be opened.

SQLite needs three things that other databases bring along: its transactions must begin where SQLAlchemy says (the
driver's own mode commits schema changes at once, which would leave half a migration), a writer must take the lock when
it begins (a reader that turns writer fails at once when another has written), and write-ahead logging, so that readers
and the writer do not wait for each other.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Column, Connection, Engine, Table, create_engine, event, exists, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError

from cuda_l1.archive.faults import database_faults, file_faults
from cuda_l1.archive.migrations import SCHEMA_VERSION, upgrade, version
from cuda_l1.config import data_home
from cuda_l1.errors import ArchiveError, UsageError

VARIABLE = "CUDA_L1_ARCHIVE"

# Drivers whose package of the same name needs a compiler or a system library.
_DRIVER_PACKAGES = {"psycopg": "'psycopg[binary]'", "psycopg2": "psycopg2-binary"}


def default_location() -> str:
    """$CUDA_L1_ARCHIVE, else `cuda-l1/archive.sqlite` under $XDG_DATA_HOME (default `~/.local/share`)."""
    if named := os.environ.get(VARIABLE):
        return named
    return str(data_home() / "archive.sqlite")


def locate(where: str | Path | None) -> URL:
    """The database URL for a path, a URL, or the default. Raises UsageError for a malformed URL."""
    text = str(where) if where is not None else default_location()
    if "://" not in text:
        return URL.create("sqlite", database=str(Path(text).expanduser().absolute()))
    try:
        return make_url(text)
    except ArgumentError as error:
        raise UsageError(
            f"{text.split('://')[0]}://...: not a database URL; expected postgresql://USER@HOST/NAME"
        ) from error


def sqlite_file(url: URL) -> Path | None:
    """The file behind a SQLite URL; None for a server or a database in memory."""
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        return None
    return Path(url.database)


def file_name(where: str | Path | None) -> str | None:
    """Of the archive's file, as one that lies beside it calls it; None for a server. Raises UsageError."""
    path = sqlite_file(locate(where))
    return path.name if path else None


def describe(url: URL) -> str:
    """How messages name the archive: the path, or the URL without its password."""
    path = sqlite_file(url)
    return f"archive {path or url.render_as_string(hide_password=True)}"


def open_engine(url: URL, *, create: bool, timeout_s: float) -> Engine:
    """An engine on an archive of the current schema, made or migrated where needed.

    Without `create` a file that may not be written, or lies in such a folder, can be read.

    Raises ArchiveError (locked, newer, disk full), UsageError (no archive, no file, no driver).
    """
    path = sqlite_file(url)
    if path is not None:
        _prepare_file(path, create=create)
    read_only = path is not None and not create and not _is_writable(path)
    engine = _engine(_read_only(url) if read_only else url, timeout_s)
    try:
        with database_faults(describe(url)):
            _bring_up_to_date(engine, describe(url))
            if path is not None and not read_only:
                _write_ahead(engine)
    except BaseException:
        engine.dispose()
        raise
    return engine


def writing(engine: Engine) -> Engine:
    """The same engine for transactions that will write: SQLite takes its lock at once."""
    return engine.execution_options(sqlite_begin="BEGIN IMMEDIATE")


def insert_new(connection: Connection, table: Table, key: Column[Any], row: dict[str, Any]) -> bool:
    """Inserts a row unless its key, a content hash, is there; returns whether it was inserted.

    The savepoint is for databases where another process can insert the same hash between the look and the insert.
    SQLite's only writer needs none, and a full disk ends it with the transaction, which would hide the cause.
    """
    if connection.scalar(select(exists().where(key == row[key.name]))):
        return False
    if connection.dialect.name == "sqlite":
        connection.execute(table.insert().values(row))
        return True
    try:
        with connection.begin_nested():
            connection.execute(table.insert().values(row))
    except IntegrityError:
        if not connection.scalar(select(exists().where(key == row[key.name]))):
            raise
        return False
    return True


def _prepare_file(path: Path, *, create: bool) -> None:
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name the archive's file, e.g. {path / 'archive.sqlite'}")
    if path.exists():
        if not path.is_file():
            raise UsageError(f"{path} is no file; name the archive's file, e.g. archive.sqlite")
        if not create and not path.stat().st_size:
            raise UsageError(f"{path} is empty and no archive; check the path, or let a first verdict make it")
        return
    if not create:
        raise UsageError(f"{path}: no such archive; check the path, or let a first verdict make it")
    with file_faults(path):
        path.parent.mkdir(parents=True, exist_ok=True)


def _is_writable(path: Path) -> bool:
    """SQLite writes beside the file, too."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _read_only(url: URL) -> URL:
    """The same file, promised to change under nobody's hands where no log lies beside it: a log needs a writer."""
    assert url.database is not None
    still = "" if Path(f"{url.database}-wal").exists() else "&immutable=1"
    return URL.create("sqlite", database=f"file:{quote(url.database)}?mode=ro{still}", query={"uri": "true"})


def _engine(url: URL, timeout_s: float) -> Engine:
    sqlite = url.get_backend_name() == "sqlite"
    unknown = f"{describe(url)}: unknown kind of database; use a path or postgresql://..."
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise UsageError(unknown)
    try:
        engine = create_engine(url, connect_args={"timeout": timeout_s} if sqlite else {}, pool_pre_ping=not sqlite)
    except NoSuchModuleError as error:
        raise UsageError(unknown) from error
    except ModuleNotFoundError as error:
        package = _DRIVER_PACKAGES.get(error.name or "", error.name)
        raise UsageError(f"{describe(url)}: its Python driver is missing; run: pip install {package}") from error
    if sqlite:
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA trusted_schema=OFF")  # the file may be somebody else's, and its views, too
    connection.execute("PRAGMA synchronous=FULL")  # with NORMAL a power cut loses the last commits of the log


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("sqlite_begin", "BEGIN"))


def _bring_up_to_date(engine: Engine, where: str) -> None:
    if _checked_version(engine, where) == SCHEMA_VERSION:
        return
    try:
        with writing(engine).begin() as connection:
            upgrade(connection)
    except DBAPIError:
        # Two processes may open a new database on a server at once; one of them finds the tables already there.
        if _checked_version(engine, where) != SCHEMA_VERSION:
            raise


def _checked_version(engine: Engine, where: str) -> int:
    with engine.connect() as connection:
        found = version(connection)
    if found is None:
        raise UsageError(f"{where} is not an archive but another program's database; name another one")
    if found > SCHEMA_VERSION:
        raise ArchiveError(
            f"{where} has schema version {found}, this cuda-l1 knows up to {SCHEMA_VERSION}; upgrade cuda-l1"
        )
    return found


def _write_ahead(engine: Engine) -> None:
    """Switches the file to WAL. Best effort: it needs the file for itself, and a later opening will do as well."""
    connection = engine.raw_connection()
    try:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.close()
    except sqlite3.OperationalError as error:
        if not getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
            raise
    finally:
        connection.close()
