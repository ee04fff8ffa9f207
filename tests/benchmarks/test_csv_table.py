"""A table survives interruptions and grows by one line per finished item."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from attack_table import COLUMNS as COLUMNS_OF_ATTACKS
from csv_table import Table, read_rows
from cuda_l1.errors import UsageError

COLUMNS = ("task", "dtype", "value", "remark")


def table(path: Path) -> Table:
    return Table(path / "t.csv", COLUMNS, keys=2)


def test_values_are_written_as_text(tmp_path: Path) -> None:
    table(tmp_path).append({"task": "a", "dtype": "fp32", "value": 1 / 3, "remark": 'two\nlines, "quoted"'})
    table(tmp_path).append({"task": "b", "dtype": "fp32", "value": None, "remark": True})
    assert table(tmp_path).rows() == [
        {"task": "a", "dtype": "fp32", "value": "0.333333", "remark": 'two lines, "quoted"'},
        {"task": "b", "dtype": "fp32", "value": "", "remark": "yes"},
    ]


def test_the_later_of_two_rows_with_one_key_counts(tmp_path: Path) -> None:
    made = table(tmp_path)
    for task, value in (("a", 1), ("b", 2), ("a", 3)):
        made.append({"task": task, "dtype": "fp32", "value": value})
    made.append({"task": "a", "dtype": "bf16", "value": 4})
    assert [(row["task"], row["value"]) for row in made.rows()] == [("a", "3"), ("b", "2"), ("a", "4")]


def test_a_torn_line_is_left_out_and_the_next_one_is_whole(tmp_path: Path) -> None:
    made = table(tmp_path)
    made.append({"task": "a", "dtype": "fp32", "value": 1})
    with made.path.open("a") as file:
        file.write("b,fp")
    assert [row["task"] for row in made.rows()] == ["a"]
    table(tmp_path).append({"task": "c", "dtype": "fp32", "value": 2})
    assert [row["task"] for row in made.rows()] == ["a", "c"]


def test_a_file_with_other_columns_is_refused(tmp_path: Path) -> None:
    table(tmp_path)
    with pytest.raises(UsageError, match="give another --out"):
        Table(tmp_path / "t.csv", ("task", "value"), keys=1)


def test_a_file_from_before_a_column_gets_it(tmp_path: Path) -> None:
    path, known = tmp_path / "attacks.csv", [name for name in COLUMNS_OF_ATTACKS if name != "rules"]
    Table(path, known, keys=2).append({"kind": "attack", "case": "clock/threads", "outcome": "REJECTED"})
    before = read_rows(path, COLUMNS_OF_ATTACKS[:2])
    assert "rules" not in before[0]
    made = Table(path, COLUMNS_OF_ATTACKS, keys=2)
    assert made.rows() == [{**row, "rules": ""} for row in before]
    made.append({**before[0], "rules": 16})
    assert Table(path, COLUMNS_OF_ATTACKS, keys=2).rows()[0] == {**before[0], "rules": "16"}


def test_an_unknown_column_is_a_mistake_of_the_script(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="speed"):
        table(tmp_path).append({"task": "a", "dtype": "fp32", "speed": 2})


def _append_many(path: Path, name: str) -> None:
    made = table(path)
    for number in range(50):
        made.append({"task": name, "dtype": str(number), "remark": "x" * 300})


def test_several_processes_append_to_one_file(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_append_many, args=(tmp_path, name)) for name in "abc"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(table(tmp_path).rows()) == 150
