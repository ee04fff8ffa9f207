"""The archive: every verdict ever paid for, append-only, in a SQLite file or a PostgreSQL database."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy import ColumnElement, Connection, Engine, func, or_, select

from cuda_l1 import scoring
from cuda_l1.archive import database, variants
from cuda_l1.archive.exemplars import Exemplars
from cuda_l1.archive.faults import database_faults
from cuda_l1.archive.hacks import HackCases
from cuda_l1.archive.rebuild import batches, fill_log_speedup, parse, parse_record
from cuda_l1.archive.replies import Replies
from cuda_l1.archive.tables import candidates, log_speedup, records, tasks
from cuda_l1.config import Precision
from cuda_l1.errors import ArchiveError
from cuda_l1.types import Candidate, Clock, Outcome, Record, Task

RELEASE = "release"
"""The suite of tasks that are known from a release alone."""
_OLDEST_FIRST = (records.c.time, records.c.run, records.c.sequence, records.c.id)


class Archive:
    """Several processes may read and append at once. Every append is on disk when it returns.

    All methods raise ArchiveError (locked longer than the timeout, damaged, unreachable, the disk full or failing) and,
    where they write, UsageError (it cannot be written to); what was committed before stays.
    """

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self.name = name
        """How messages name it: `archive PATH`, or the URL without its password."""
        self.hacks = HackCases(engine, name)
        """Confirmed attacks, for a reviewer."""
        self.replies = Replies(engine, name)
        """What language models answered."""
        self.exemplars = Exemplars(engine, name)
        """Earlier variants, for a prompt."""

    @classmethod
    def open(cls, where: str | Path | None = None, *, create: bool = True, timeout_s: float = 30.0) -> Self:
        """Opens, and where needed makes or migrates, the archive at a path or database URL.

        None means $CUDA_L1_ARCHIVE, else `$XDG_DATA_HOME/cuda-l1/archive.sqlite`. A SQLite lock held by another
        process is waited for `timeout_s` seconds. Raises ArchiveError (locked, not an archive, written by a newer
        version, disk full), UsageError (bad URL, missing driver; no file and `create` is off).
        """
        url = database.locate(where)
        return cls(database.open_engine(url, create=create, timeout_s=timeout_s), database.describe(url))

    @classmethod
    def look(cls, where: str | Path | None = None) -> Self:
        """The archive that is there, else an empty one in memory: looking something up leaves nothing behind.

        Raises what `open` raises.
        """
        path = database.sqlite_file(database.locate(where))
        return cls.open("sqlite://" if path is not None and not path.exists() else where, create=False)

    def close(self) -> None:
        """Gives the connections back; the archive can no longer be used."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    # ── Writing ───────────────────────────────────────────────────────────────────────────────────

    def append(self, record: Record, task: Task) -> str:
        """Stores a record of `task` durably and returns its id; storing the same record again changes nothing.

        Raises ValueError when the record is of another task or would not read back as it is.
        """
        if record.candidate.task_sha != task.sha:
            raise ValueError(f"the record is of task {record.candidate.task_id}, not of {task.id}")
        row = _record_row(record)
        with database_faults(self.name), database.writing(self._engine).begin() as connection:
            variants.lock(connection)
            _insert_task(connection, task)
            _insert(connection, record, row)
        return str(row["id"])

    def merge(self, other: Archive) -> int:
        """Adds what `other` holds and this one lacks, hack cases and replies too; returns how many records were new.

        Doing it twice changes nothing. Interrupted, it keeps the batches already added; running it again adds the rest.
        What `other` says is believed as what was measured here is. Raises ArchiveError also for what cannot be read.
        """
        everything = list(other._ids())  # before the tasks: another process may append to it meanwhile
        held = list(other.tasks())
        added = self._append_all([], held)
        shas = {task.sha for task in held}
        self.hacks.add(other.hacks.all())
        for found in batches(other.replies.all()):
            self.replies.add(found)
        for ids in batches(everything):
            present = set(self._ids(records.c.id.in_(ids)))
            new = other._documents([i for i in ids if i not in present])
            if lost := next((record for record in new if record.candidate.task_sha not in shas), None):
                other.task_of(lost)
            added += self._append_all(new, [])
        return added

    def rebuild_index(self) -> int:
        """Computes every index figure anew from the evaluations; returns how many records differed."""
        with database_faults(self.name), database.writing(self._engine).begin() as connection:
            variants.lock(connection)
            changed = fill_log_speedup(connection)
            variants.fill_variants(connection)
            return changed

    # ── Reading ───────────────────────────────────────────────────────────────────────────────────

    def find(self, candidate_id: str, environment_key: str, protocol: str, *, run: str | None = None) -> Record | None:
        """The latest record of this candidate in this place under this protocol (and of this run), or None."""
        wanted = [
            records.c.candidate_id == candidate_id,
            records.c.environment_key == environment_key,
            records.c.protocol == protocol,
        ]
        return next(self._read(*wanted, *([records.c.run == run] if run is not None else []), latest=1), None)

    def records(
        self,
        task_sha: str | None = None,
        run: str | None = None,
        outcome: Outcome | str | None = None,
        protocol: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Record]:
        """Records that match every argument given, oldest first; with `limit` only the latest that many.

        What is appended while iterating is not part of it. No lock is held in between.
        """
        wanted = {"task_sha": task_sha, "run": run, "outcome": outcome, "protocol": protocol}
        conditions = [records.c[name] == str(value) for name, value in wanted.items() if value is not None]
        return self._read(*conditions, latest=limit)

    def latest(self, task_sha: str, environment_key: str, *, accepted: bool, limit: int) -> list[Record]:
        """The latest `screen` records of a task in one place that were accepted, or that were not; oldest first."""
        outcome = records.c.outcome == str(Outcome.ACCEPTED)
        place = (records.c.task_sha == task_sha, records.c.environment_key == environment_key)
        return list(self._read(*place, records.c.protocol == "screen", outcome if accepted else ~outcome, latest=limit))

    def matching(self, prefix: str, limit: int = 10) -> list[Record]:
        """The latest records whose own id, or whose candidate's, begins with `prefix`; oldest first."""
        return list(
            self._read(
                or_(
                    records.c.id.startswith(prefix, autoescape=True),
                    records.c.candidate_id.startswith(prefix, autoescape=True),
                ),
                latest=limit,
            )
        )

    def task(self, sha: str) -> Task | None:
        """The task with this hash, or None."""
        return next(self._tasks(tasks.c.sha == sha), None)

    def task_of(self, record: Record) -> Task:
        """The task of one of its records. Raises ArchiveError where it is lost."""
        task = self.task(record.candidate.task_sha)
        if task is None:
            raise ArchiveError(
                f"{self.name} is damaged: the task {record.candidate.task_id} of record {record.id[:12]} is not in it; "
                "restore a copy"
            )
        return task

    def tasks(self) -> Iterator[Task]:
        """Every task, by suite and name."""
        return self._tasks()

    def best(
        self,
        task_sha: str,
        environment_key: str | None = None,
        precision: Precision = "default",
        clock: Clock | None = None,
        device_name: str | None = None,
    ) -> Record | None:
        """The `final` record with the highest speed-up against eager on `clock` among those that may win, or None.

        May win: no baseline, accepted, confined, unsuspected, exact enough for `precision`, and not slower on the other
        clock. Of several finals of one candidate in one place the latest by the latest rules stands: a later suspicion
        counts.
        Without `environment_key` and `device_name` records of all places compete, though figures of different machines
        cannot be compared.
        """
        conditions = [records.c.task_sha == task_sha, records.c.protocol == "final"]
        if environment_key is not None:
            conditions.append(records.c.environment_key == environment_key)
        if device_name is not None:
            conditions.append(records.c.device_name == device_name)
        standing: dict[tuple[str, str], Record] = {}
        for record in itertools.chain.from_iterable(map(self._documents, batches(self._latest_of_each(*conditions)))):
            environment = record.evaluation.environment
            known = standing.setdefault((record.candidate.id, environment.place), record)
            if environment.rules > known.evaluation.environment.rules:
                standing[record.candidate.id, environment.place] = record
        ranked = (
            (figure, record)
            for record in standing.values()
            if not record.candidate.is_baseline
            and scoring.counts(record.evaluation, precision)
            and not scoring.slower_on_other_clock(record.evaluation, clock)
            and (figure := scoring.speedup(record.evaluation, clock)) is not None
        )
        return max(ranked, key=lambda pair: pair[0], default=(0.0, None))[1]

    def device_names(self, task_sha: str) -> list[str]:
        """Names of the devices on which a `final` of the task was accepted, sorted."""
        accepted = (
            records.c.task_sha == task_sha,
            records.c.protocol == "final",
            records.c.outcome == str(Outcome.ACCEPTED),
        )
        with database_faults(self.name), self._engine.connect() as connection:
            return sorted(connection.scalars(select(records.c.device_name).where(*accepted).distinct()))

    def next_sequence(self, run: str) -> int:
        """One more than the highest sequence number of `run`; 1 for a new run.

        Two processes that append to one run may draw the same number; their records stay apart by id.
        """
        with database_faults(self.name), self._engine.connect() as connection:
            highest = connection.scalar(select(func.max(records.c.sequence)).where(records.c.run == run))
        return (highest or 0) + 1

    # ── Inside ────────────────────────────────────────────────────────────────────────────────────

    def _append_all(self, found: list[Record], known_tasks: list[Task]) -> int:
        with database_faults(self.name), database.writing(self._engine).begin() as connection:
            variants.lock(connection)
            for task in known_tasks:
                _insert_task(connection, task)
            return sum(_insert(connection, record, _readable_row(record)) for record in found)

    def _ids(self, *conditions: ColumnElement[bool]) -> list[str]:
        with database_faults(self.name), self._engine.connect() as connection:
            return list(connection.scalars(select(records.c.id).where(*conditions)))

    def _read(self, *conditions: ColumnElement[bool], latest: int | None = None) -> Iterator[Record]:
        newest = select(records.c.id).where(*conditions).order_by(*(column.desc() for column in _OLDEST_FIRST))
        with database_faults(self.name), self._engine.connect() as connection:
            ids = list(connection.scalars(newest.limit(latest)))[::-1]
        # The documents follow in batches, so that a slow reader holds neither a lock nor the whole archive in memory.
        return (record for batch in batches(ids) for record in self._documents(batch))

    def _latest_of_each(self, *conditions: ColumnElement[bool]) -> list[str]:
        """The id of the latest record of each candidate in each place."""
        query = select(records.c.candidate_id, records.c.environment_key, records.c.id).where(*conditions)
        with database_faults(self.name), self._engine.connect() as connection:
            rows = connection.execute(query.order_by(*_OLDEST_FIRST))
            return list({(candidate, place): str(record_id) for candidate, place, record_id in rows}.values())

    def _documents(self, ids: list[str]) -> list[Record]:
        with database_faults(self.name), self._engine.connect() as connection:
            rows = connection.execute(select(records.c.id, records.c.document).where(records.c.id.in_(ids)))
            found = {str(record_id): str(document) for record_id, document in rows}
        return [parse(Record, "record", record_id, found[record_id], self.name) for record_id in ids]

    def _tasks(self, *conditions: ColumnElement[bool]) -> Iterator[Task]:
        query = (
            select(tasks.c.sha, tasks.c.document).where(*conditions).order_by(tasks.c.suite, tasks.c.name, tasks.c.sha)
        )
        with database_faults(self.name), self._engine.connect() as connection:
            documents = list(connection.execute(query))
        return (parse(Task, "task", sha, document, self.name) for sha, document in documents)


def _insert(connection: Connection, record: Record, row: dict[str, Any]) -> bool:
    """The record and all that follows from it; False where it is there already."""
    database.insert_new(connection, candidates, candidates.c.id, _candidate_row(record.candidate))
    new = database.insert_new(connection, records, records.c.id, row)
    if new:
        variants.enter(connection, record)
    return new


def _insert_task(connection: Connection, task: Task) -> None:
    """A task that is known keeps its name, unless a release alone has named it: what its suite calls it is better."""
    row = _task_row(task)
    if not database.insert_new(connection, tasks, tasks.c.sha, row) and task.suite != RELEASE:
        named_by_release = (tasks.c.sha == task.sha, tasks.c.suite == RELEASE)
        connection.execute(tasks.update().where(*named_by_release).values(row))


def _task_row(task: Task) -> dict[str, Any]:
    return {"sha": task.sha, "suite": task.suite, "name": task.name, "document": task.model_dump_json()}


def _candidate_row(candidate: Candidate) -> dict[str, Any]:
    return {
        "id": candidate.id,
        "task_sha": candidate.task_sha,
        "language": candidate.language,
        "document": candidate.model_dump_json(),
    }


def _readable_row(record: Record) -> dict[str, Any]:
    """The row of a record that somebody else's archive held."""
    try:
        return _record_row(record)
    except ValueError as error:
        raise ArchiveError(str(error)) from error


def _record_row(record: Record) -> dict[str, Any]:
    document = record.model_dump_json()
    try:
        readable = parse_record(record.id, document).id == record.id
    except ArchiveError as error:
        raise ValueError(f"the record would not read back: {error}") from error
    if not readable:
        raise ValueError(f"record {record.id[:12]} would read back with another id")
    evaluation = record.evaluation
    return {
        "id": record.id,
        "task_sha": record.candidate.task_sha,
        "candidate_id": record.candidate.id,
        "outcome": str(evaluation.outcome),
        "protocol": evaluation.protocol,
        "environment_key": evaluation.environment.key,
        "device_name": evaluation.environment.device_name,
        "run": record.run,
        "sequence": record.sequence,
        # Fixed width and one zone, so that text sorts as time does.
        "time": record.time.astimezone(UTC).isoformat(timespec="microseconds"),
        "document": document,
        "log_speedup": log_speedup(evaluation),
    }
