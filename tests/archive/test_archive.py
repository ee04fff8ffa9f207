"""What goes in comes out: look-ups, the best record, merging, the index column."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from cuda_l1.archive import Archive
from cuda_l1.errors import ArchiveError
from cuda_l1.report.selection import select
from cuda_l1.types import Environment, Finding, Outcome, Record, Task, Timing

Make = Callable[..., Record]
GPU = Environment(device="cuda", device_name="Test GPU", lane="gpu", rung="R2", torch="2.9.0", driver="1")
OTHER_LANE = Environment(device="cpu", device_name="Test CPU", lane="0-7", rung="R1", torch="2.9.0")


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive.open(tmp_path / "archive.sqlite") as opened:
        yield opened


def test_a_record_reads_back_equal_with_the_same_id(archive: Archive, make_record: Make, task: Task) -> None:
    record = make_record("class ModelNew: ...  # \x00 ü 🚀")
    assert archive.append(record, task) == record.id
    (read,) = archive.records()
    assert read == record
    assert read.id == record.id
    assert archive.task(task.sha) == task


def test_a_verdict_under_other_rules_is_kept_and_not_served(archive: Archive, make_record: Make, task: Task) -> None:
    old = make_record(environment=GPU)
    archive.append(old, task)
    now = GPU.model_copy(update={"rules": 2})
    assert archive.find(old.candidate.id, GPU.key, old.evaluation.protocol) == old
    assert archive.find(old.candidate.id, now.key, old.evaluation.protocol) is None


def test_of_two_finals_the_one_by_later_rules_stands(archive: Archive, make_record: Make, task: Task) -> None:
    older = make_record(protocol="final", sequence=2)
    archive.append(older, task)
    assert archive.best(task.sha) == older
    place = older.evaluation.environment.model_copy(update={"rules": 1})
    archive.append(make_record(protocol="final", speedup=None, environment=place, sequence=1), task)
    assert archive.best(task.sha) is None
    assert len(list(archive.records(task.sha))) == 2


def test_a_record_from_before_rules_had_a_number_keeps_its_id_and_place(make_record: Make) -> None:
    record = make_record(environment=GPU)
    document = json.loads(record.model_dump_json())
    del document["evaluation"]["environment"]["rules"]
    read = Record.model_validate(document)
    assert (read.id, read.evaluation.environment.key) == (record.id, GPU.key)


def test_an_infinite_error_is_stored_as_null(archive: Archive, make_record: Make, task: Task) -> None:
    record = make_record()
    correctness = record.evaluation.correctness
    assert correctness is not None
    trial = correctness.trials[0].model_copy(update={"error": float("inf")})
    wrong = record.evaluation.model_copy(
        update={"correctness": correctness.model_copy(update={"trials": (trial,)}), "outcome": Outcome.WRONG_VALUES}
    )
    record = record.model_copy(update={"evaluation": wrong})
    archive.append(record, task)
    (read,) = archive.records()
    assert read.id == record.id
    assert read.evaluation.correctness is not None
    assert read.evaluation.correctness.trials[0].error is None


def test_a_record_that_would_not_read_back_is_refused(archive: Archive, make_record: Make, task: Task) -> None:
    record = make_record()
    timing = record.evaluation.timings[0].model_copy(update={"speedup": float("inf")})
    record = record.model_copy(update={"evaluation": record.evaluation.model_copy(update={"timings": (timing,)})})
    with pytest.raises(ValueError, match=r"would not read back: .*speedup"):
        archive.append(record, task)
    assert list(archive.records()) == []


def test_appending_twice_stores_once(archive: Archive, make_record: Make, task: Task) -> None:
    for _ in range(2):
        archive.append(make_record(), task)
    assert len(list(archive.records())) == 1


def test_a_record_of_another_task_is_refused(archive: Archive, make_record: Make, other_task: Task) -> None:
    with pytest.raises(ValueError, match="not of builtin/another"):
        archive.append(make_record(), other_task)


def test_find_gives_the_latest_of_the_same_place_protocol_and_run(
    archive: Archive, make_record: Make, task: Task
) -> None:
    first, second = make_record(sequence=1, run="a"), make_record(sequence=2, run="b", speedup=3.0)
    for record in (second, first, make_record("y", sequence=3)):
        archive.append(record, task)
    place, candidate = first.evaluation.environment.key, first.candidate.id
    assert archive.find(candidate, place, "screen") == second
    assert archive.find(candidate, place, "screen", run="a") == first
    assert archive.find(candidate, place, "final") is None
    assert archive.find(candidate, OTHER_LANE.key, "screen") is None


def test_records_filters_and_limits_to_the_latest(
    archive: Archive, make_record: Make, task: Task, other_task: Task
) -> None:
    for number in range(5):
        archive.append(make_record(f"{number}", sequence=number, speedup=None if number == 2 else 2.0), task)
    archive.append(make_record("z", task=other_task, run="else", sequence=9, protocol="final"), other_task)

    def numbers(**wanted: object) -> list[int]:
        return [record.sequence for record in archive.records(**wanted)]  # type: ignore[arg-type]

    assert numbers() == [0, 1, 2, 3, 4, 9]
    assert numbers(limit=2) == [4, 9]
    assert numbers(task_sha=task.sha, limit=2) == [3, 4]
    assert numbers(run="else") == [9]
    assert numbers(outcome="WRONG_VALUES") == [2]
    assert numbers(protocol="final", task_sha=task.sha) == []
    assert [t.name for t in archive.tasks()] == ["another", "toy"]


def test_reading_many_records_while_appending(archive: Archive, make_record: Make, task: Task) -> None:
    for number in range(230):
        archive.append(make_record(f"{number}", sequence=number), task)
    seen = []
    for record in archive.records():
        seen.append(record.sequence)
        if record.sequence < 3:
            archive.append(make_record(f"new {record.sequence}", sequence=1000), task)
    assert seen == list(range(230))


def test_matching_finds_by_either_id(archive: Archive, make_record: Make, task: Task) -> None:
    record = make_record()
    archive.append(record, task)
    assert archive.matching(record.id[:10]) == [record]
    assert archive.matching(record.candidate.id[:10]) == [record]
    assert archive.matching("%") == []


def test_best_takes_only_finals_that_may_win(archive: Archive, make_record: Make, task: Task) -> None:
    suspect = Finding(check="silent-fallback", severity="suspect", evidence="line 3")
    slow_device = Timing.model_validate(
        {**make_record(speedup=0.5).evaluation.timings[0].model_dump(), "clock": "device"}
    )
    fast_call = make_record(speedup=7.0).evaluation.timings[0]
    entries = [
        make_record("screen", speedup=9.0, sequence=1),
        make_record("suspect", speedup=8.0, protocol="final", findings=(suspect,), sequence=2),
        make_record("slower elsewhere", speedup=7.0, protocol="final", timings=(fast_call, slow_device), sequence=3),
        make_record("inexact", speedup=6.0, protocol="final", precision_class="relaxed", sequence=4),
        make_record("elsewhere", speedup=5.0, protocol="final", environment=OTHER_LANE, sequence=5),
        make_record("good", speedup=3.0, protocol="final", sequence=6),
        make_record("better", speedup=4.0, protocol="final", sequence=7),
        make_record("wrong", speedup=None, protocol="final", sequence=8),
    ]
    for record in entries:
        archive.append(record, task)

    def text_of(record: Record | None) -> str | None:
        return record.candidate.source if record else None

    place = entries[0].evaluation.environment.key
    assert text_of(archive.best(task.sha, place)) == "better"
    assert text_of(archive.best(task.sha)) == "elsewhere"
    assert text_of(archive.best(task.sha, place, precision="relaxed")) == "inexact"
    assert archive.best(task.sha, GPU.key) is None
    assert archive.best("0" * 64) is None
    name = entries[0].evaluation.environment.device_name
    assert archive.device_names(task.sha) == sorted({name, OTHER_LANE.device_name})
    assert text_of(archive.best(task.sha, device_name=name)) in ("better", "elsewhere")
    assert archive.best(task.sha, device_name="no such device") is None
    assert archive.device_names("0" * 64) == []


def test_the_latest_verdict_on_a_candidate_stands(archive: Archive, make_record: Make, task: Task) -> None:
    review = Finding(check="review", severity="suspect", evidence="line 3")
    for sequence, given in enumerate(
        [
            {"text": "suspected later", "speedup": 9.0},
            {"text": "wrong later", "speedup": 8.0},
            {"text": "luckier before", "speedup": 7.0},
            {"text": "other", "speedup": 2.0},
            {"text": "suspected later", "speedup": 9.0, "findings": (review,)},
            {"text": "wrong later", "speedup": None},
            {"text": "luckier before", "speedup": 3.0},
        ]
    ):
        archive.append(make_record(protocol="final", sequence=sequence, **given), task)
    best = archive.best(task.sha)
    assert best is not None and best.candidate.source == "luckier before"
    assert best.evaluation.timings[0].speedup == 3.0


def test_sequence_numbers_go_on(archive: Archive, make_record: Make, task: Task) -> None:
    assert archive.next_sequence("run") == 1
    archive.append(make_record(sequence=7), task)
    assert archive.next_sequence("run") == 8
    assert archive.next_sequence("other") == 1


def test_merge_unites_and_is_idempotent(tmp_path: Path, make_record: Make, task: Task, other_task: Task) -> None:
    with Archive.open(tmp_path / "a") as ours, Archive.open(tmp_path / "b") as theirs:
        shared = make_record("shared", sequence=1)
        for archive in (ours, theirs):
            archive.append(shared, task)
        ours.append(make_record("ours", sequence=2), task)
        for number in range(120):
            theirs.append(make_record(f"theirs {number}", sequence=3 + number, task=other_task), other_task)
        assert ours.merge(theirs) == 120
        assert ours.merge(theirs) == 0
        assert theirs.merge(ours) == 1
        assert {r.id for r in ours.records()} == {r.id for r in theirs.records()}
        assert list(ours.records()) == list(theirs.records())
        assert {t.sha for t in ours.tasks()} == {task.sha, other_task.sha}
        assert ours.merge(ours) == 0


def test_an_archive_is_read_while_another_process_appends(
    tmp_path: Path, make_record: Make, task: Task, other_task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first verdict on a task comes in right after the tasks were read."""
    listed = Archive.tasks
    with Archive.open(tmp_path / "a") as ours, Archive.open(tmp_path / "b") as theirs:
        theirs.append(make_record("early", sequence=1), task)

        def tasks(archive: Archive) -> Iterator[Task]:
            found = list(listed(archive))
            theirs.append(make_record("late", sequence=2, task=other_task), other_task)
            return iter(found)

        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(Archive, "tasks", tasks)
            assert ours.merge(theirs) == 1
        assert ours.merge(theirs) == 1

        fresh = Task(suite="builtin", name="newest", source="class Model: 3\n")

        def newest(archive: Archive) -> Iterator[Task]:
            found = list(listed(archive))
            theirs.append(make_record("newest", sequence=3, task=fresh), fresh)
            return iter(found)

        monkeypatch.setattr(Archive, "tasks", newest)
        assert {entry.task.sha for entry in select([theirs]).entries} == {task.sha, other_task.sha, fresh.sha}


def test_an_archive_that_lost_a_task_is_named(tmp_path: Path, make_record: Make, task: Task) -> None:
    with Archive.open(tmp_path / "a") as ours, Archive.open(tmp_path / "b") as theirs:
        theirs.append(make_record("one", sequence=1), task)
        with sqlite3.connect(tmp_path / "b") as connection:
            connection.execute("DELETE FROM tasks")
        connection.close()
        for read in (lambda: ours.merge(theirs), lambda: select([theirs])):
            with pytest.raises(ArchiveError, match=r"/b is damaged: the task .*toy@.* is not in it; restore a copy"):
                read()
        assert not list(ours.records())


def test_rebuild_index_repairs_the_column(tmp_path: Path, make_record: Make, task: Task) -> None:
    path = tmp_path / "archive.sqlite"
    with Archive.open(path) as archive:
        archive.append(make_record("fast", speedup=2.0), task)
        archive.append(make_record("wrong", speedup=None, sequence=2), task)
        engine = create_engine(f"sqlite:///{path}")
        with engine.begin() as connection:
            connection.execute(text("UPDATE records SET log_speedup = 99"))
        assert archive.rebuild_index() == 2
        assert archive.rebuild_index() == 0
        with engine.begin() as connection:
            stored = list(connection.scalars(text("SELECT log_speedup FROM records ORDER BY sequence")))
        engine.dispose()
    assert stored[0] == pytest.approx(0.6931, abs=1e-4)
    assert stored[1] is None
