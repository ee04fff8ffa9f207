"""No mean is over two texts of one name, or over scaled tasks and others; and every task can be told from any other."""

from __future__ import annotations

from report_fakes import CPU, GPU, entry, task

from cuda_l1.report.build import build
from cuda_l1.report.cells import Share
from cuda_l1.report.editions import editions
from cuda_l1.report.formats import as_objects
from cuda_l1.tasks.sizes import own_name, resized
from cuda_l1.types import Task


def of(name: str, source: str, suite: str = "kernelbench") -> Task:
    return Task(suite=suite, name=name, source=source, level=1)


A, B = of("level1/19_ReLU", "x = 1"), of("level1/20_LeakyReLU", "x = 2")
OTHER_A = of("level1/19_ReLU", "x = 3")
SCALED_A = of("level1/19_ReLU[batch_size=2]", "x = 4")
SCALED_OTHER_A = of("level1/19_ReLU[batch_size=16]", "x = 5")


def test_texts_of_one_name_and_scaled_tasks_have_editions_of_their_own() -> None:
    told = editions([A, B, A, OTHER_A, SCALED_A, SCALED_OTHER_A])
    assert [told[one.sha].edition for one in (A, B, OTHER_A, SCALED_A, SCALED_OTHER_A)] == [
        "", "", "edition 2", "scaled tasks", "scaled tasks, edition 2",
    ]  # fmt: skip
    assert told[B.sha].name == "kernelbench/level1/20_LeakyReLU"
    assert told[A.sha].name == f"kernelbench/level1/19_ReLU@{A.sha[:7]}" != told[OTHER_A.sha].name


def test_what_people_call_a_file_makes_no_edition() -> None:
    versions = [of("model", f"x = {number}", "file") for number in range(3)]
    told = editions(versions)
    assert {one.edition for one in told.values()} == {""} and len({one.name for one in told.values()}) == 3


def test_a_resized_task_has_its_own_name_in_it() -> None:
    sized = Task(suite="x", name="a[b]", source="batch = 8\nshape = (4, 4)\ndef get_inputs(): return batch, shape\n")
    assert own_name(resized(sized, {"batch": 2}).name) == own_name(resized(sized, {"shape[0]": 2}).name) == "a[b]"
    assert own_name("a[b]") == "a[b]" and own_name("[=" * 10_000 + "]")


def test_no_mean_is_over_two_editions() -> None:
    report = build([entry(one, 2.0) for one in (A, B, OTHER_A, SCALED_A)])
    assert [section.title.partition("clock")[2] for section in report.sections] == ["", ", edition 2", ", scaled tasks"]
    shares = [row.cells[-1] for block in report.blocks for t in block.tables if t.name == "methods" for row in t.rows]
    assert shares == [Share(2, 2), Share(1, 1), Share(1, 1)]
    names = [row.cells[0] for block in report.blocks for t in block.tables if t.name == "tasks" for row in t.rows]
    assert len(set(names)) == 4
    rows = [fields["edition"] for fields in as_objects(report) if fields["kind"] == "task"]
    assert sorted(rows) == ["", "", "edition 2", "scaled tasks"]
    assert "place by place" not in str(report.blocks[0].title.lower()), "editions are no places"


def test_each_place_counts_its_own_texts() -> None:
    report = build([entry(A, 2.0, place=CPU), entry(OTHER_A, 2.0, place=GPU)])
    assert [section.edition for section in report.sections] == ["", ""]


def test_a_repeated_name_is_told_apart_wherever_it_stands() -> None:
    assert editions([task("1_a", 1), task("1_a", 1)])[task("1_a", 1).sha].name == "kernelbench/1_a"
