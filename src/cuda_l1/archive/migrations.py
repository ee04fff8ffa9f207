"""How the schema came to be: numbered functions, each run once and written down in `cuda_l1_schema`.

A migration is never edited once released. Its tables are spelled out here, not imported from `tables`, because
`tables` moves on. The last one leaves exactly the schema of `tables` (a test compares them).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import (
    Column,
    Connection,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    func,
    inspect,
    select,
    text,
)

from cuda_l1.archive.rebuild import fill_log_speedup
from cuda_l1.archive.tables import schema_versions
from cuda_l1.archive.variants import fill_variants

Migration = Callable[[Connection], None]


def m001_initial(connection: Connection) -> None:
    """Tasks, candidates and records, a JSON document each, with the columns that look-ups need."""
    metadata = MetaData()
    Table(
        "tasks",
        metadata,
        Column("sha", String(64), primary_key=True),
        Column("suite", Text, nullable=False),
        Column("name", Text, nullable=False),
        Column("document", Text, nullable=False),
    )
    Table(
        "candidates",
        metadata,
        Column("id", String(64), primary_key=True),
        Column("task_sha", String(64), ForeignKey("tasks.sha"), nullable=False),
        Column("language", String(16), nullable=False),
        Column("document", Text, nullable=False),
    )
    Table(
        "records",
        metadata,
        Column("id", String(64), primary_key=True),
        Column("task_sha", String(64), ForeignKey("tasks.sha"), nullable=False),
        Column("candidate_id", String(64), ForeignKey("candidates.id"), nullable=False),
        Column("outcome", String(32), nullable=False),
        Column("protocol", String(32), nullable=False),
        Column("environment_key", String(64), nullable=False),
        Column("device_name", Text, nullable=False),
        Column("run", Text, nullable=False),
        Column("sequence", Integer, nullable=False),
        Column("time", String(32), nullable=False),
        Column("document", Text, nullable=False),
        Index("records_by_candidate", "candidate_id", "environment_key", "protocol"),
        Index("records_by_run", "run", "sequence"),
    )
    metadata.create_all(connection, checkfirst=False)


def m002_log_speedup(connection: Connection) -> None:
    """A column to sort by: the log speed-up, filled from the documents that are there."""
    connection.execute(text("ALTER TABLE records ADD COLUMN log_speedup DOUBLE PRECISION"))
    connection.execute(text("CREATE INDEX records_by_task ON records (task_sha, protocol, log_speedup)"))
    fill_log_speedup(connection)


def m003_hack_cases(connection: Connection) -> None:
    """Confirmed attacks with their explanations, for a reviewer."""
    metadata = MetaData()
    Table(
        "hack_cases",
        metadata,
        Column("id", String(64), primary_key=True),
        Column("name", Text, nullable=False),
        Column("document", Text, nullable=False),
    )
    metadata.create_all(connection, checkfirst=False)


def m004_replies(connection: Connection) -> None:
    """What language models answered, paid for whether or not it holds a candidate."""
    metadata = MetaData()
    Table(
        "replies",
        metadata,
        Column("id", String(64), primary_key=True),
        Column("run", Text, nullable=False),
        Column("task_sha", String(64), nullable=False),
        Column("model", Text, nullable=False),
        Column("time", String(32), nullable=False),
        Column("problem", String(32)),
        Column("tokens_in", Integer, nullable=False),
        Column("tokens_out", Integer, nullable=False),
        Column("usd", Double),
        Column("document", Text, nullable=False),
        Index("replies_by_run", "run", "time"),
        Index("replies_by_task", "task_sha", "model"),
    )
    metadata.create_all(connection, checkfirst=False)


def m005_variants(connection: Connection) -> None:
    """What may be shown as an exemplar, one row a candidate and place, and how many there are by score."""
    metadata = MetaData()
    Table("candidates", metadata, Column("id", String(64), primary_key=True))
    variants = Table(
        "variants",
        metadata,
        Column("environment_key", String(64), primary_key=True),
        Column("candidate_id", String(64), ForeignKey("candidates.id"), primary_key=True),
        Column("task_sha", String(64), nullable=False),
        Column("bin", Integer, nullable=False),
        Column("slot", Integer, nullable=False),
        Column("log_reward", Double, nullable=False),
        Index("variants_by_score", "task_sha", "environment_key", "bin", "log_reward", "candidate_id"),
    )
    counts = Table(
        "variant_counts",
        metadata,
        Column("task_sha", String(64), primary_key=True),
        Column("environment_key", String(64), primary_key=True),
        Column("bin", Integer, primary_key=True, autoincrement=False),
        Column("slot", Integer, primary_key=True, autoincrement=False),
        Column("count", Integer, nullable=False),
        Column("total", Double, nullable=False),
    )
    metadata.create_all(connection, tables=[variants, counts], checkfirst=False)
    fill_variants(connection)


MIGRATIONS: tuple[Migration, ...] = (m001_initial, m002_log_speedup, m003_hack_cases, m004_replies, m005_variants)
SCHEMA_VERSION = len(MIGRATIONS)


def version(connection: Connection) -> int | None:
    """The schema's version; 0 for an empty database, None for one that holds tables but is no archive."""
    names = inspect(connection).get_table_names()
    if schema_versions.name not in names:
        return None if names else 0
    return connection.scalar(select(func.max(schema_versions.c.version))) or 0


def upgrade(connection: Connection, migrations: tuple[Migration, ...] = MIGRATIONS) -> None:
    """Runs what is missing, inside the caller's transaction: all of it is committed or none."""
    found = version(connection)
    if found is None:
        raise ValueError("not an archive")
    schema_versions.create(connection, checkfirst=True)
    for number, migration in enumerate(migrations[found:], start=found + 1):
        migration(connection)
        row = {"version": number, "name": migration.__name__, "applied_at": datetime.now(UTC).isoformat()}
        connection.execute(schema_versions.insert().values(row))
