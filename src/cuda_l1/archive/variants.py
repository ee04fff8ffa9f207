"""The variants that may be shown as exemplars: one row for each candidate and place, kept up to date by every append.

Two tables, so that a draw is fast however many records there are: `variants` is sorted by score, and `variant_counts`
holds how many there are in each bin of the score and the sum of their scores. Both follow from the records and can be
rebuilt.
"""

from __future__ import annotations

import math
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, select, update

from cuda_l1 import scoring
from cuda_l1.archive.rebuild import batches, parse_record
from cuda_l1.archive.sampling import bin_of
from cuda_l1.archive.tables import records, schema_versions, variant_counts, variants
from cuda_l1.config import COMPAT
from cuda_l1.types import Record

SLOTS = 16
"""Parts of equal size that candidates fall into by their hash; an island is some of them."""

DROPIN = "_dropin_"
"""A name that only exported files hold: the same variant again, with a guard around it."""


def score_of(record: Record) -> float | None:
    """The logarithm of the reward, where the variant may be shown; else None.

    It may where it counts (`scoring.counts`: accepted by a protocol of ours, confined, unsuspected, exact enough) and
    is neither a baseline nor an exported file. Slower on the other clock, it is worth no more than the reference.
    """
    candidate, evaluation = record.candidate, record.evaluation
    if candidate.is_baseline or DROPIN in candidate.source or not scoring.counts(evaluation):
        return None
    reward = scoring.reward(evaluation)
    return math.log(reward) if 0.0 < reward < math.inf else None


def lock(connection: Connection) -> None:
    """Lets one writer at a time at the counts, on servers; SQLite has one writer anyway. First in a transaction."""
    connection.execute(select(schema_versions.c.version).with_for_update()).all()


def enter(connection: Connection, record: Record) -> None:
    """Takes a record that is in `records` into account, in the transaction that appended it.

    The latest of a candidate's records in a place decides, so that a later suspicion takes a variant away.
    """
    if record.evaluation.protocol in COMPAT or _latest(connection, record) != record.id:
        return
    place = record.evaluation.environment.key
    own = (variants.c.environment_key == place, variants.c.candidate_id == record.candidate.id)
    before = connection.execute(select(variants).where(*own)).mappings().first()
    after = _row(record)
    if before is not None and after is not None and dict(before) == after:
        return
    if before is not None:
        connection.execute(delete(variants).where(*own))
        _count(connection, dict(before), -1)
    if after is not None:
        connection.execute(variants.insert().values(after))
        _count(connection, after, 1)


def fill_variants(connection: Connection) -> None:
    """Makes both tables anew from the records, oldest first."""
    connection.execute(delete(variants))
    connection.execute(delete(variant_counts))
    timed = select(records.c.id).where(records.c.log_speedup.is_not(None)).order_by(records.c.time, records.c.id)
    for ids in batches(connection.scalars(timed).all()):
        found = connection.execute(select(records.c.id, records.c.document).where(records.c.id.in_(ids))).all()
        for record_id, document in found:
            enter(connection, parse_record(str(record_id), str(document)))


def _row(record: Record) -> dict[str, Any] | None:
    score = score_of(record)
    if score is None:
        return None
    return {
        "environment_key": record.evaluation.environment.key,
        "candidate_id": record.candidate.id,
        "task_sha": record.candidate.task_sha,
        "bin": bin_of(score),
        "slot": int(record.candidate.id[:8], 16) % SLOTS,
        "log_reward": score,
    }


def _latest(connection: Connection, record: Record) -> str | None:
    same = (
        records.c.candidate_id == record.candidate.id,
        records.c.environment_key == record.evaluation.environment.key,
        records.c.protocol.not_in(COMPAT),
    )
    newest_first = (column.desc() for column in (records.c.time, records.c.run, records.c.sequence, records.c.id))
    return connection.scalar(select(records.c.id).where(*same).order_by(*newest_first).limit(1))


def _count(connection: Connection, row: dict[str, Any], sign: int) -> None:
    key = {name: row[name] for name in ("task_sha", "environment_key", "bin", "slot")}
    where: list[ColumnElement[bool]] = [variant_counts.c[name] == value for name, value in key.items()]
    count, total = variant_counts.c.count, variant_counts.c.total
    changed = connection.execute(
        update(variant_counts).where(*where).values(count=count + sign, total=total + sign * row["log_reward"])
    )
    if changed.rowcount == 0:
        connection.execute(variant_counts.insert().values(**key, count=sign, total=sign * row["log_reward"]))
    elif sign < 0:
        connection.execute(delete(variant_counts).where(*where, count == 0))
