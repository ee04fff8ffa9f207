"""What language models answered: each reply that was ever paid for, with what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC
from typing import Any

from sqlalchemy import ColumnElement, Engine, select

from cuda_l1.archive import database
from cuda_l1.archive.faults import database_faults
from cuda_l1.archive.rebuild import batches, parse
from cuda_l1.archive.tables import replies
from cuda_l1.types import Reply


class Replies:
    """The replies of one archive; append-only, as records are.

    All methods raise ArchiveError and, where they write, UsageError, as those of `Archive` do.
    """

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._name = name

    def append(self, reply: Reply) -> bool:
        """Stores a reply durably; False, and nothing changes, where the same question has an answer already."""
        return self.add([reply]) == 1

    def add(self, found: Iterable[Reply]) -> int:
        """Stores those that are not there yet; returns how many were new."""
        with database_faults(self._name), database.writing(self._engine).begin() as connection:
            return sum(database.insert_new(connection, replies, replies.c.id, _row(reply)) for reply in found)

    def find(self, reply_id: str) -> Reply | None:
        """The answer to that question, or None."""
        return next(self._read(replies.c.id == reply_id), None)

    def of_run(self, run: str, task_sha: str | None = None, *, environment_key: str | None = None) -> Iterator[Reply]:
        """The replies of a run (about one task), oldest first; of one place with those that do not say of which."""
        found = self._read(replies.c.run == run, *([] if task_sha is None else [replies.c.task_sha == task_sha]))
        return (reply for reply in found if environment_key is None or reply.is_of(environment_key))

    def of_task(self, task_sha: str) -> Iterator[Reply]:
        """The replies about one task, of any run, oldest first."""
        return self._read(replies.c.task_sha == task_sha)

    def all(self) -> Iterator[Reply]:
        """Every reply, oldest first."""
        return self._read()

    def _read(self, *conditions: ColumnElement[bool]) -> Iterator[Reply]:
        oldest_first = select(replies.c.id).where(*conditions).order_by(replies.c.time, replies.c.id)
        with database_faults(self._name), self._engine.connect() as connection:
            ids = list(connection.scalars(oldest_first))
        return (reply for batch in batches(ids) for reply in self._documents(batch))

    def _documents(self, ids: list[str]) -> list[Reply]:
        with database_faults(self._name), self._engine.connect() as connection:
            rows = connection.execute(select(replies.c.id, replies.c.document).where(replies.c.id.in_(ids)))
            found = {str(reply_id): str(document) for reply_id, document in rows}
        return [parse(Reply, "reply", reply_id, found[reply_id], self._name) for reply_id in ids]


def _row(reply: Reply) -> dict[str, Any]:
    return {
        "id": reply.id,
        "run": reply.run,
        "task_sha": reply.task_sha,
        "model": reply.model,
        # Fixed width and one zone, so that text sorts as time does.
        "time": reply.time.astimezone(UTC).isoformat(timespec="microseconds"),
        "problem": reply.problem,
        "tokens_in": reply.cost.tokens_in,
        "tokens_out": reply.cost.tokens_out,
        "usd": reply.cost.usd,
        "document": reply.model_dump_json(),
    }
