"""Index columns rebuilt from the documents, which are the truth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from sqlalchemy import Connection, select, update

from cuda_l1.archive.tables import log_speedup, records
from cuda_l1.errors import ArchiveError
from cuda_l1.types import Record
from cuda_l1.validation import first_problem

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

BATCH = 100
"""Documents read at a time: a `final` can hold half a megabyte of samples."""


def batches(items: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    """`items` in lists of at most `size`."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def parse_record(record_id: str, document: str) -> Record:
    """The record in a document; ArchiveError when it is damaged."""
    return parse(Record, "record", record_id, document)


def parse(kind: type[M], what: str, key: str, document: str, where: str = "") -> M:
    """The object in a document; where it is damaged, ArchiveError with what it is called and the start of its key.

    `where` names the archive: a report reads several.
    """
    try:
        return kind.model_validate_json(document)
    except ValidationError as error:
        place = f"{where}: " if where else ""
        raise ArchiveError(f"{place}{what} {key[:12]} cannot be read: {first_problem(error)}") from error


def fill_log_speedup(connection: Connection) -> int:
    """Writes `log_speedup` of every record anew; returns how many differed."""
    changed = 0
    for ids in batches(connection.scalars(select(records.c.id)).all()):
        wanted = select(records.c.id, records.c.document, records.c.log_speedup).where(records.c.id.in_(ids))
        for record_id, document, stored in connection.execute(wanted).all():
            value = log_speedup(parse_record(record_id, document).evaluation)
            if value != stored:
                connection.execute(update(records).where(records.c.id == record_id).values(log_speedup=value))
                changed += 1
    return changed
