"""The schema's history: every migration from the original schema, and what refuses to be an archive."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, inspect, text

from cuda_l1.archive import Archive, migrations
from cuda_l1.archive.tables import metadata
from cuda_l1.config import SamplerSettings
from cuda_l1.errors import ArchiveError, UsageError
from cuda_l1.types import HackCase, Record, Reply, Task

Make = Callable[..., Record]


def write_version_1(path: Path, record: Record, task: Task) -> None:
    """An archive as m001 leaves it, with one record."""
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        migrations.upgrade(connection, migrations.MIGRATIONS[:1])
        connection.execute(
            text("INSERT INTO tasks VALUES (:sha, 'builtin', 'toy', :document)"),
            {"sha": task.sha, "document": task.model_dump_json()},
        )
        connection.execute(
            text("INSERT INTO candidates VALUES (:id, :task, 'pytorch', :document)"),
            {"id": record.candidate.id, "task": task.sha, "document": record.candidate.model_dump_json()},
        )
        connection.execute(
            text(
                "INSERT INTO records VALUES (:id, :task, :candidate, 'ACCEPTED', 'screen', :place, 'Test CPU', "
                "'run', 1, '2025-01-01T00:00:01.000000+00:00', :document)"
            ),
            {
                "id": record.id,
                "task": task.sha,
                "candidate": record.candidate.id,
                "place": record.evaluation.environment.key,
                "document": record.model_dump_json(),
            },
        )
    engine.dispose()


def test_the_migrations_lead_to_the_tables_in_use(tmp_path: Path) -> None:
    Archive.open(tmp_path / "migrated").close()
    declared = create_engine(f"sqlite:///{tmp_path / 'declared'}")
    metadata.create_all(declared)
    migrated = create_engine(f"sqlite:///{tmp_path / 'migrated'}")
    assert shape(migrated) == shape(declared)
    for engine in (declared, migrated):
        engine.dispose()


def shape(engine: Engine) -> dict[str, tuple[set[tuple[str, str, bool]], set[tuple[str, tuple[str, ...]]]]]:
    """Columns (name, Python type and length, nullable) and indexes (name, columns) per table."""
    inspector = inspect(engine)
    return {
        table: (
            {
                (c["name"], f"{c['type'].python_type} {getattr(c['type'], 'length', None)}", bool(c["nullable"]))
                for c in inspector.get_columns(table)
            },
            {(str(i["name"]), tuple(map(str, i["column_names"]))) for i in inspector.get_indexes(table)},
        )
        for table in inspector.get_table_names()
    }


def test_an_archive_of_version_1_is_brought_up_to_date(tmp_path: Path, make_record: Make, task: Task) -> None:
    record = make_record(speedup=2.0)
    path = tmp_path / "old.sqlite"
    write_version_1(path, record, task)
    with Archive.open(path) as archive:
        assert list(archive.records()) == [record]
        archive.append(make_record("new", sequence=2), task)
        assert archive.rebuild_index() == 0
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT version, name FROM cuda_l1_schema ORDER BY version").fetchall() == [
            (1, "m001_initial"),
            (2, "m002_log_speedup"),
            (3, "m003_hack_cases"),
            (4, "m004_replies"),
            (5, "m005_variants"),
        ]
        assert connection.execute("SELECT round(log_speedup, 3) FROM records").fetchall() == [(0.693,), (0.693,)]


def test_an_archive_of_version_2_learns_to_keep_hack_cases(tmp_path: Path, make_record: Make, task: Task) -> None:
    record, path = make_record(), tmp_path / "old.sqlite"
    write_version_1(path, record, task)
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        migrations.upgrade(connection, migrations.MIGRATIONS[:2])
    engine.dispose()
    with Archive.open(path) as archive:
        assert archive.hacks.add([HackCase(name="a", source="text", why="cheats")]) == 1
    with Archive.open(path) as archive:
        assert [case.why for case in archive.hacks.all()] == ["cheats"]
        assert list(archive.records()) == [record]


def test_an_archive_of_version_3_learns_replies_and_exemplars(
    tmp_path: Path, make_record: Make, make_reply: Callable[..., Reply], task: Task
) -> None:
    record, path = make_record(speedup=2.0), tmp_path / "old.sqlite"
    write_version_1(path, record, task)
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        migrations.upgrade(connection, migrations.MIGRATIONS[:3])
    engine.dispose()
    place = record.evaluation.environment.key
    with Archive.open(path) as archive:
        drawn = archive.exemplars.draw(task.sha, SamplerSettings(), seed=0, environment_key=place)
        assert [(e.candidate_id, round(e.score or 0, 6)) for e in drawn] == [(record.candidate.id, 2.0)]
        assert archive.replies.append(make_reply())
    with Archive.open(path) as archive:
        assert list(archive.replies.all()) == [make_reply()]
        assert list(archive.records()) == [record]


def test_a_migration_that_fails_changes_nothing(
    tmp_path: Path, make_record: Make, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.sqlite"
    write_version_1(path, make_record(), task)
    before = sqlite3.connect(path).execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
    monkeypatch.setattr(migrations, "fill_log_speedup", lambda connection: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Archive.open(path)
    assert sqlite3.connect(path).execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall() == before
    monkeypatch.undo()
    with Archive.open(path) as archive:
        assert len(list(archive.records())) == 1


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "new.sqlite"
    Archive.open(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO cuda_l1_schema VALUES (99, 'm099_future', '2099')")
    with pytest.raises(ArchiveError, match=r"version 99, this cuda-l1 knows up to 5; upgrade cuda-l1$") as caught:
        Archive.open(path)
    assert "\n" not in str(caught.value)


def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE invoices (id INTEGER)")
    before = path.read_bytes()
    with pytest.raises(UsageError, match="another program's database"):
        Archive.open(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to have a header\n" * 50)
    with pytest.raises(UsageError, match="is not an archive; name another file"):
        Archive.open(path)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        Archive.open(tmp_path)


def test_a_device_is_refused() -> None:
    with pytest.raises(UsageError, match="/dev/null is no file; name the archive's file"):
        Archive.open("/dev/null", create=False)


def test_an_empty_file_becomes_an_archive_where_one_may_be_made(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(UsageError, match="is empty and no archive"):
        Archive.open(tmp_path / "empty", create=False)
    assert (tmp_path / "empty").stat().st_size == 0
    with Archive.open(tmp_path / "empty") as archive:
        assert list(archive.records()) == []


def test_the_default_place_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_L1_ARCHIVE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    Archive.open().close()
    assert (tmp_path / "data" / "cuda-l1" / "archive.sqlite").is_file()
    monkeypatch.setenv("CUDA_L1_ARCHIVE", f"sqlite:///{tmp_path / 'named.sqlite'}")
    Archive.open().close()
    assert (tmp_path / "named.sqlite").is_file()


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("postgresql+psycopg_missing://u:secret@host/db", "unknown kind of database"),
        ("nonsense://u:secret@host/db", "unknown kind of database"),
        ("mysql://u:secret@host/db", "unknown kind of database"),
        ("postgresql+pg8000://u:secret@host/db", "its Python driver is missing; run: pip install pg8000"),
        ("://", "not a database URL"),
    ],
)
def test_a_bad_url_is_one_line_without_the_password(where: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        Archive.open(where)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_archive_is_made_where_one_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such archive"):
        Archive.open(tmp_path / "missing.sqlite", create=False)
    assert list(tmp_path.iterdir()) == []
