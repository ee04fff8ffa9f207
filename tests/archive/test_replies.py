"""What was paid for is kept: found again, counted, merged."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from cuda_l1.archive import Archive
from cuda_l1.errors import ArchiveError
from cuda_l1.types import Reply, digest

Make = Callable[..., Reply]


def test_an_answer_is_found_by_its_question_and_kept_once(tmp_path: Path, make_reply: Make) -> None:
    first = make_reply()
    with Archive.open(tmp_path / "a.sqlite") as archive:
        assert archive.replies.append(first)
        assert not archive.replies.append(make_reply(text="another answer to the same question"))
        assert archive.replies.find(first.id) == first
        assert archive.replies.find("0" * 64) is None
    with Archive.open(tmp_path / "a.sqlite") as archive:
        assert list(archive.replies.of_run("run")) == [first]


def test_a_run_is_read_in_order_and_by_task(tmp_path: Path, make_reply: Make) -> None:
    with Archive.open(tmp_path / "a.sqlite") as archive:
        for number in (2, 0, 1):
            archive.replies.append(make_reply(number))
        archive.replies.append(make_reply(3, task_sha="other"))
        archive.replies.append(make_reply(0, run="another"))
        assert [reply.number for reply in archive.replies.of_run("run")] == [0, 1, 2, 3]
        assert [reply.number for reply in archive.replies.of_run("run", "other")] == [3]


def test_a_reply_without_a_known_price_is_kept(tmp_path: Path, make_reply: Make) -> None:
    with Archive.open(tmp_path / "a.sqlite") as archive:
        paid = make_reply()
        unpriced = paid.model_copy(update={"number": 77, "cost": paid.cost.model_copy(update={"usd": None})})
        assert archive.replies.append(unpriced) and archive.replies.find(unpriced.id) == unpriced


def test_merge_unites_replies(tmp_path: Path, make_reply: Make) -> None:
    with Archive.open(tmp_path / "a.sqlite") as one, Archive.open(tmp_path / "b.sqlite") as two:
        one.replies.add([make_reply(0), make_reply(1)])
        two.replies.add([make_reply(1), *(make_reply(number) for number in range(2, 250))])
        assert one.merge(two) == 0
        assert one.merge(two) == 0
        assert [reply.number for reply in one.replies.all()] == list(range(250))


def test_runs_of_one_name_in_two_places_keep_their_replies_when_they_are_merged(
    tmp_path: Path, make_reply: Make
) -> None:
    """Equal settings give runs equal names, on whichever GPU."""
    here, there = (make_reply(environment_key=key * 64) for key in "ab")
    with Archive.open(tmp_path / "a.sqlite") as one, Archive.open(tmp_path / "b.sqlite") as two:
        one.replies.append(here)
        two.replies.append(there)
        one.merge(two)
        assert {reply.environment_key for reply in one.replies.all()} == {"a" * 64, "b" * 64}
        assert list(one.replies.of_run("run", environment_key="a" * 64)) == [here]


def test_a_reply_that_does_not_say_its_place_is_read_under_its_id(tmp_path: Path, make_reply: Make) -> None:
    path, silent = tmp_path / "a.sqlite", make_reply()
    document = silent.model_dump_json(exclude={"environment_key"})
    assert silent.id == digest("run", "large", "localhost:8000", "p" * 64, "0")
    with Archive.open(path) as archive:
        archive.replies.append(silent)
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE replies SET document = ?", (document,))
        assert archive.replies.find(silent.id) == silent
        assert list(archive.replies.of_run("run", environment_key="a" * 64)) == [silent]


def test_a_damaged_reply_is_named(tmp_path: Path, make_reply: Make) -> None:
    path = tmp_path / "a.sqlite"
    with Archive.open(path) as archive:
        archive.replies.append(make_reply())
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE replies SET document = '{}'")
        with pytest.raises(ArchiveError, match=f"reply {make_reply().id[:12]} cannot be read"):
            archive.replies.find(make_reply().id)
