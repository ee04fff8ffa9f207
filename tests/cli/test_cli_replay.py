"""`cuda-l1 replay`: what it says of a release, with a stand-in for the evaluator; and one real release of tricks."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from cli_fakes import FAST, REFERENCE, FakeEvaluator, lines

from cuda_l1.errors import TaskError, UsageError


def write(path: Path, *rows: dict) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def row(task: int, code: str | None = FAST, level: int = 1, published: float | None = 2.0, **fields) -> dict:
    scores = {"score_default": published, "score_cuda_graph": 1.6}
    return {"level_id": level, "task_id": task, "ref_code": REFERENCE, "custom_code": code, **scores, **fields}


@pytest.fixture
def release(tmp_path: Path) -> Path:
    rows = [row(1, FAST + "# speedup 1.9\n"), row(2, FAST + "# outcome CRASHED\n"), row(3, None), row(1, "x", level=2)]
    return write(tmp_path / "release.jsonl", *rows)


def test_each_kernel_has_the_published_figure_both_verdicts_and_the_reasons(run, release):
    result = run("replay", release, "--select", "level1", "--json")
    assert result.exit_code == 0
    *found, summary = lines(result)
    told = {line["task"]: line for line in found if line["kind"] == "replay"}
    assert set(told) == {"level1/1", "level1/2"}
    first = told["level1/1"]
    assert first["published"] == 2.0 and first["theirs"]["protocol"] == "cuda-l1" and first["reasons"] == []
    assert first["ours"]["protocol"] == "final" and first["speedup_eager"] == first["ours"]["speedup"] == 1.9
    assert first["speedup_eager_low"] < 1.9 and first["reference"] == "release" and not first["reference_differs"]
    assert first["environment"]["device_name"] == "test cpu"
    assert [reason["why"] for reason in told["level1/2"]["reasons"]] == ["did not run"]
    assert summary["kernels"] == 2 and summary["accepted"] == 1 and summary["reasons"] == {"did not run": 1}
    assert summary["geometric_means"] == pytest.approx({"published": 2.0, "theirs": 1.9, "ours": 1.9})


@pytest.mark.parametrize("code", [None, "", " \n"])
def test_a_task_without_a_kernel_stands_in_every_form_as_such(run, tmp_path, code):
    rows = row(1, code), row(2), row(3, published=None), row(4, code, published=None), row(1, code, level=2)
    path = write(tmp_path / "r.jsonl", *rows)
    words = "replay", path, "--select", "level1", "--ours", "screen"
    *found, summary = lines(run(*words, "--json"))
    told = {line["task"]: line for line in found if line["kind"] == "nothing"}
    assert {task: line["published"] for task, line in told.items()} == {"level1/1": 2.0, "level1/4": None}
    assert told["level1/1"]["column"] == "custom" and told["level1/1"]["scores"]["cuda_graph"] == 1.6
    assert (summary["nothing"], summary["kernels"], summary["published"]) == (2, 2, 1)
    shown = run(*words, "--out", tmp_path / "r.md", "--html", tmp_path / "site").stdout
    table, page = (tmp_path / "r.md").read_text(), (tmp_path / "site" / "index.html").read_text()
    for text in (shown, table, page):
        assert re.findall(r"level\d/\d+", text) == ["level1/2", "level1/3", "level1/1", "level1/4"]
        assert "not here: verdicts on 2 tasks for which the release has no kernel in column custom" in text
        assert "2 kernels: 1 with a published figure" in text
    assert "| level1/1 | 2.00x | nothing | nothing | - | - | no kernel published |" in table
    assert "| level1/4 | - | nothing | nothing | - | - | no kernel published |" in table
    *_, summary = lines(run("replay", path, "--select", "1/2", "--json"))
    assert summary["nothing"] == 0


def test_a_task_of_another_suite_has_its_name(run, tmp_path):
    named, other = {"task": "builtin/gelu@0123"}, {"task": ["no name"]}
    result = run(
        "replay", write(tmp_path / "r.jsonl", row(1, level=0, evidence=named), row(2, level=0, evidence=other))
    )
    assert "level0/1 (builtin/gelu): published" in result.stderr and "level0/2: published" in result.stderr
    assert "level0/1 (builtin/gelu)" in result.stdout


def test_the_table_shows_them_side_by_side(run, release):
    result = run("replay", release, "--select", "1/1-2", "--ours", "screen", "--protocol", "kernelbench")
    assert "as kernelbench says" in result.stdout and "1.90x" in result.stdout and "2.00x" in result.stdout
    assert "did not run: it says so" in result.stdout and "[2/2]" in result.stderr
    assert "the release's own" in result.stderr and "1 more has none" not in result.stderr


def test_the_table_is_written_as_markdown_and_as_a_page_without_judging_again(run, release, tmp_path, monkeypatch):
    run("replay", release, "--select", "level1")
    monkeypatch.setattr(FakeEvaluator, "evaluate", lambda *_, **__: pytest.fail("judged again"))
    words = "replay", release, "--select", "1/1", "--out", tmp_path / "r.md", "--html", tmp_path / "site"
    for _ in range(2):  # an earlier page of ours is replaced
        assert run(*words).exit_code == 0
    told = (tmp_path / "r.md").read_text()
    assert "### release.jsonl, replayed" in told and "| level1/1 | 2.00x | 1.90x | 1.90x (" in told
    page = (tmp_path / "site" / "index.html").read_text()
    row = r"<td[^>]*>level1/1</td><td[^>]*>2\.00x</td><td[^>]*>1\.90x</td>"
    assert re.search(row, page) and "1 stands by our own rules" in page and 'data-table="shown"' in page
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("x")
    assert run(*words[:-1], tmp_path / "mine").exit_code == 2
    assert run("replay", release, "--out", tmp_path / "no" / "where.md").exit_code == 2


def test_what_is_right_but_suspected_is_marked(run, tmp_path):
    path = write(
        tmp_path / "r.jsonl",
        row(1, FAST + "# suspect physics\n# speedup 7.0"),
        row(2),
        row(3, FAST + "# outcome CRASHED"),
    )
    result = run("replay", path, "--out", tmp_path / "r.md")
    assert "here 7.00x, does not count: suspect for physics (" in result.stderr
    assert result.stderr.count("does not count") == 1
    told = {line["task"]: line for line in lines(run("replay", path, "--json"))[:-1]}
    assert [told[f"level1/{n}"]["counts"] for n in (1, 2, 3)] == [False, True, False]
    assert [told[f"level1/{n}"]["why_not"] for n in (1, 2, 3)] == ["suspect for physics", "", ""]
    cells = [line.split(" | ") for line in (tmp_path / "r.md").read_text().splitlines() if "level1/" in line]
    assert [row[5] for row in cells] == ["no: suspect for physics", "yes", "-"]


def test_as_many_evaluators_as_were_asked_for(run, release, monkeypatch):
    monkeypatch.setattr("cuda_l1.api.pool.default_size", lambda *_, **__: pytest.fail("the number was given"))
    assert run("replay", release, "--select", "level1", "--at-once", 2).exit_code == 0


def test_a_second_run_pays_for_nothing_twice(run, release, monkeypatch):
    run("replay", release, "--select", "1/1")
    monkeypatch.setattr(FakeEvaluator, "evaluate", lambda *_, **__: pytest.fail("judged again"))
    assert run("replay", release, "--select", "1/1").exit_code == 0


def test_an_interrupted_run_goes_on_where_it_stopped(run, tmp_path):
    path = write(tmp_path / "r.jsonl", row(1), row(2, FAST + "# raise KeyboardInterrupt\n"))
    assert run("replay", path).exit_code == 130
    write(path, row(1), row(2, FAST + "# speedup 3\n"))
    result = run("replay", path, "--json")
    assert result.exit_code == 0 and len(lines(result)) == 3


def test_a_fault_of_the_machine_ends_a_replay_only_where_it_is_met_again_and_again(run, tmp_path, monkeypatch):
    monkeypatch.setattr("cuda_l1.search.verdicts.time.sleep", lambda s: None)
    monkeypatch.setattr("cuda_l1.api.pool.default_size", lambda *given, **more: 1)
    broken = FAST + "# machine fails\n"
    path = write(tmp_path / "r.jsonl", row(1), row(2, broken), row(3, broken), row(4))
    result = run("replay", path, "--json")
    assert result.exit_code == 0
    told = {line.get("task"): line for line in lines(result)[:-1]}
    assert told["level1/2"]["fault"] == "the device is gone" and told["level1/2"]["ours"] is None
    assert told["level1/4"]["ours"]["outcome"] == "ACCEPTED"
    write(path, row(1), *(row(number, broken) for number in (2, 3, 4, 5)))
    result = run("replay", path)
    assert result.exit_code == 3 and result.stderr.splitlines()[-1] == "cuda-l1: the device is gone"


def test_a_kernel_that_no_judge_takes_is_named_and_the_rest_goes_on(run, tmp_path, monkeypatch):
    judged = FakeEvaluator.evaluate

    def evaluate(self, task, candidate, **given):
        if "# huge" in candidate.source:
            raise UsageError("task and candidates are too large to be judged together")
        return judged(self, task, candidate, **given)

    monkeypatch.setattr(FakeEvaluator, "evaluate", evaluate)
    result = run("replay", write(tmp_path / "r.jsonl", row(1, FAST + "# huge\n"), row(2)), "--json")
    told = {line.get("task"): line for line in lines(result)[:-1]}
    assert result.exit_code == 0 and "too large" in told["level1/1"]["fault"]
    assert told["level1/2"]["ours"]["outcome"] == "ACCEPTED"


def test_other_columns_follow_from_two_scores(run, tmp_path):
    path = write(tmp_path / "r.jsonl", row(1, cuda_graph_code=REFERENCE + "# speedup 1.2\n"))
    told = lines(run("replay", path, "--column", "cuda_graph", "--json"))[0]
    assert told["published"] == pytest.approx(2.0 / 1.6) and told["column"] == "cuda_graph"
    assert told["ours"]["outcome"] == "ACCEPTED"


def test_kernels_without_a_published_figure_come_last_in_every_form(run, tmp_path):
    rows = row(1, published=None), row(10, published=10.0), row(2), row(1, level=2)
    path = write(tmp_path / "r.jsonl", *rows)
    words = "replay", path, "--ours", "screen", "--out", tmp_path / "r.md", "--html", tmp_path / "site"
    result = run(*words)
    page = (tmp_path / "site" / "index.html").read_text()
    for text in (result.stdout, (tmp_path / "r.md").read_text(), page):
        assert re.findall(r"level\d/\d+", text) == ["level1/2", "level1/10", "level2/1", "level1/1"]
    # In a browser a column sorts by these, and what is missing stays last.
    assert re.findall(r'>level\d/\d+</td><td[^>]* data-value="([^"]*)"', page) == ["2.0", "10.0", "2.0", ""]


def test_figures_as_far_apart_as_numbers_are_are_told_as_they_are(run, tmp_path):
    scores = {"published": 1e300, "score_cuda_graph": 1e-300}
    far = FAST + "# speedup 1e-300\n"
    path = write(tmp_path / "r.jsonl", row(1, far, cuda_graph_code=REFERENCE + "# speedup 1e300\n", **scores))
    for column, published, ours in (("custom", 1e300, 1e-300), ("cuda_graph", 1e300, 1e300)):
        result = run("replay", path, "--column", column, "--out", tmp_path / "r.md", "--json")
        (told, summary) = lines(result)
        assert result.exit_code == 0 and (told["published"], told["speedup_eager"]) == (published, ours)
        assert summary["geometric_means"]["published"] == pytest.approx(published)
        assert not re.search(r"\b(nan|inf|Infinity|NaN)\b|\d{20}", result.stdout.replace(path.name, ""))
        table = (tmp_path / "r.md").read_text()
        assert "| 1.00e+300x | " in table and ("1.00e-300x" in table) == (ours < 1)


def test_many_figures_of_the_largest_float_have_a_mean(run, tmp_path):
    rows = [row(number, published=sys.float_info.max) for number in range(1, 48)]  # their logarithms' mean is beyond
    *_, summary = lines(run("replay", write(tmp_path / "r.jsonl", *rows), "--ours", "screen", "--json"))
    assert summary["geometric_means"]["published"] == pytest.approx(1e300)


def checkout(folder: Path, *problems: tuple[str, str]) -> Path:
    for name, text in problems:
        path = folder / "KernelBench" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_references_come_from_a_checkout_and_those_that_differ_are_named(run, tmp_path):
    path = write(tmp_path / "r.jsonl", row(1), row(2), row(3))
    commented = '"""A task."""\nUNUSED = 1\n' + REFERENCE + "# the same program\n"
    others = ("level1/1_A.py", commented), ("level1/2_B.py", REFERENCE.replace("4, 4", "8, 8"))
    result = run("replay", path, "--kernelbench", checkout(tmp_path / "kb", *others), "--json")
    told = {line["task"]: (line["reference"], line["reference_differs"]) for line in lines(result)[:-1]}
    assert told == {
        "level1/1": ("kernelbench", False),
        "level1/2": ("kernelbench", True),
        "level1/3": ("release", False),
    }
    assert "level1/2: the release's reference is another program than level1/2_B" in result.stderr
    assert "level1/3: is not in the checkout" in result.stderr and "references differ" not in result.stderr


def test_references_that_a_checkout_has_not_are_told_apart_from_those_that_differ(run, tmp_path):
    path = write(tmp_path / "r.jsonl", *(row(number) for number in range(1, 13)))
    said = run("replay", path, "--kernelbench", checkout(tmp_path / "kb", ("level2/1_A.py", REFERENCE))).stderr
    assert "12 of 12 are not in the checkout" in said and "references differ" not in said
    assert "level1/5: is not" in said and "level1/6: is not" not in said and "... and 7 more" in said


def test_a_figure_against_another_reference_is_marked_and_stands_in_no_mean(run, tmp_path):
    path = write(
        tmp_path / "r.jsonl", row(1, FAST + "# speedup 4.0\n"), row(2, FAST + "# speedup 8.0\n", published=50.0)
    )
    others = ("level1/1_A.py", REFERENCE), ("level1/2_B.py", REFERENCE.replace("4, 4", "8, 8"))
    words = "replay", path, "--kernelbench", checkout(tmp_path / "kb", *others)
    *found, summary = lines(run(*words, "--json"))
    told = {line["task"]: [reason["why"] for reason in line["reasons"]] for line in found}
    assert told == {"level1/1": ["another figure here"], "level1/2": ["another reference"]}
    assert summary["geometric_means"] == pytest.approx({"published": 2.0, "theirs": 4.0, "ours": 4.0})
    assert summary["geometric_means_over"] == 1 and summary["accepted"] == 2
    shown = run(*words)
    assert "50.00x (another reference)" in shown.stdout and "50.00x (another reference)" in shown.stderr
    assert "geometric means over 1 of those that stand" in shown.stdout


def test_without_a_published_figure_the_means_are_those_of_both_verdicts(run, tmp_path):
    path = write(tmp_path / "r.jsonl", row(1, FAST + "# speedup 4.0\n", published=None))
    *_, summary = lines(run("replay", path, "--json"))
    assert summary["geometric_means"] == {"published": None, "theirs": pytest.approx(4.0), "ours": pytest.approx(4.0)}
    assert summary["geometric_means_over"] == 1


def test_a_task_that_does_not_work_is_told_and_the_rest_goes_on(run, release, monkeypatch):
    own = FakeEvaluator.evaluate

    def evaluate(self, task, candidate, **more):
        if "CRASHED" in candidate.source:
            raise TaskError("the reference needs more memory")
        return own(self, task, candidate, **more)

    monkeypatch.setattr(FakeEvaluator, "evaluate", evaluate)
    result = run("replay", release, "--select", "level1", "--json")
    told = {line["task"]: line for line in lines(result)[:-1]}
    assert told["level1/2"]["fault"] == "the reference needs more memory" and told["level1/2"]["ours"] is None
    assert result.exit_code == 0


def test_why_there_is_no_verdict_stands_beside_the_other_reasons(run, tmp_path, monkeypatch):
    def fails(self, task, candidate, **more):
        raise TaskError("the reference needs more memory")

    monkeypatch.setattr(FakeEvaluator, "evaluate", fails)
    folder = checkout(tmp_path / "kb", ("level1/1_A.py", REFERENCE.replace("4, 4", "8, 8")))
    result = run("replay", write(tmp_path / "r.jsonl", row(1)), "--kernelbench", folder)
    assert "here not judged (the reference needs more memory; another reference)" in result.stderr
    assert "the reference needs more memory; another reference: " in " ".join(result.stdout.split())


def test_what_cannot_be_read_is_named_and_the_rest_goes_on(run, tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(row(1)) + "\n" + json.dumps(row(2))[:50] + "\n" + json.dumps(row(1)) + "\n")
    result = run("replay", path)
    assert result.exit_code == 0
    assert "line 2: not JSON" in result.stderr and "level1/1 is there twice" in result.stderr


def test_only_kernels_that_were_asked_for_and_could_not_be_read_are_counted(run, tmp_path):
    rows = row(1, score_cudnn="N/A"), row(1), row(2, ref_code=" "), row(3), row(4, level=2, ref_code=" ")
    path = write(tmp_path / "r.jsonl", *rows)
    for selection, unread in (("level1", 1), ("1/1-2", 1), ("1/3", 0), ("level1-2", 2)):
        result = run("replay", path, "--select", selection, "--out", tmp_path / "r.md", "--json")
        assert lines(result)[-1]["unread"] == unread
        assert ("could not be read" in (tmp_path / "r.md").read_text()) == (unread > 0)
    path.write_text(path.read_text() + "{cut\n")  # which task that is about nobody knows
    assert lines(run("replay", path, "--select", "1/3", "--json"))[-1]["unread"] == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing.jsonl"], "missing.jsonl"),
        (["r.jsonl", "--select", "level9"], "level9"),
        (["r.jsonl", "--column", "cudnn"], "no kernel of column `cudnn`"),
        (["r.jsonl", "--kernelbench", "nowhere"], "not a folder"),
        (["r.jsonl", "--kernelbench", "empty"], "empty"),
        (["r.jsonl", "--device", "tpu"], "tpu"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(run, tmp_path, words, said):
    write(tmp_path / "r.jsonl", row(1))
    (tmp_path / "empty").mkdir()
    result = run("replay", *words)
    assert result.exit_code == 2 and said in result.stderr
    assert len([line for line in result.stderr.splitlines() if line.startswith("cuda-l1:")]) == 1
