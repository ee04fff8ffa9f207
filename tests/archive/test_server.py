"""The same archive on a database server: nothing in the queries is SQLite's alone.

Runs where CUDA_L1_TEST_DATABASE names an empty database, e.g. postgresql+psycopg://user@host/name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from cuda_l1.archive import Archive
from cuda_l1.archive.tables import metadata
from cuda_l1.config import SamplerSettings
from cuda_l1.errors import ArchiveError
from cuda_l1.types import Record, Reply, Task

Make = Callable[..., Record]
URL = os.environ.get("CUDA_L1_TEST_DATABASE", "")
pytestmark = pytest.mark.skipif(not URL, reason="CUDA_L1_TEST_DATABASE names no server")


@pytest.fixture
def archive() -> Iterator[Archive]:
    with Archive.open(URL) as opened:
        yield opened
    drop_tables()


def drop_tables() -> None:
    engine = create_engine(URL)
    with engine.begin() as connection:
        for table in (*metadata.tables, "cuda_l1_schema"):
            connection.execute(text(f"DROP TABLE IF EXISTS {table} CASCADE"))
    engine.dispose()


def test_an_empty_database_opened_at_once_becomes_one_archive() -> None:
    try:
        with ThreadPoolExecutor(6) as pool:
            archives = list(pool.map(Archive.open, [URL] * 6))
        for archive in archives:
            assert list(archive.records()) == []
            archive.close()
    finally:
        drop_tables()


def test_look_ups_and_merge(archive: Archive, tmp_path: Path, make_record: Make, task: Task) -> None:
    nul = make_record("a NUL \x00 and ü", protocol="final")
    archive.append(nul, task)
    with Archive.open(tmp_path / "archive.sqlite") as file:
        for number in range(120):
            file.append(make_record(f"{number}", sequence=number + 2), task)
        assert archive.merge(file) == 120
        assert archive.merge(file) == 0
        assert file.merge(archive) == 1
        assert list(file.records()) == list(archive.records())
    assert archive.best(task.sha) == nul
    assert archive.find(nul.candidate.id, nul.evaluation.environment.key, "final") == nul
    assert archive.matching(nul.id[:12]) == [nul]
    assert [record.sequence for record in archive.records(limit=2)] == [120, 121]
    assert archive.next_sequence("run") == 122
    assert archive.rebuild_index() == 0


def test_exemplars_and_replies_are_those_of_a_file(
    archive: Archive, tmp_path: Path, make_record: Make, make_reply: Callable[..., Reply], task: Task
) -> None:
    with Archive.open(tmp_path / "archive.sqlite") as file:
        for number in range(120):
            file.append(make_record(f"{number}", sequence=number + 2, speedup=0.5 + number / 20), task)
            file.replies.append(make_reply(number))
        archive.merge(file)
        assert list(archive.replies.of_run("run")) == list(file.replies.of_run("run"))
        place = make_record().evaluation.environment.key
        for kind in ("bucket", "island", "random", "top"):
            settings = SamplerSettings.model_validate({"kind": kind, "count": 4})
            drawn = [a.exemplars.draw(task.sha, settings, seed=1, environment_key=place) for a in (archive, file)]
            assert drawn[0] == drawn[1]
            assert len(drawn[0]) == 4


def test_writers_at_once_lose_no_count(archive: Archive, make_record: Make, task: Task) -> None:
    def work(thread: int) -> None:
        with Archive.open(URL) as mine:
            for number in range(20):
                mine.append(make_record(f"{thread} {number}", sequence=thread * 100 + number, speedup=2.0), task)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert archive.exemplars.count(task.sha, make_record().evaluation.environment.key) == 80


def test_opening_and_appending_the_same_at_once(archive: Archive, make_record: Make, task: Task) -> None:
    def work(thread: int) -> None:
        with Archive.open(URL) as mine:
            for number in range(20):
                mine.append(make_record(f"{number}", sequence=thread * 100 + number), task)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert len(list(archive.records())) == 80
    assert len(list(archive.tasks())) == 1


def test_a_server_that_is_not_there_is_one_line(archive: Archive) -> None:
    with pytest.raises(ArchiveError) as caught:
        Archive.open("postgresql+psycopg://user:secret@127.0.0.1:1/none")
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
