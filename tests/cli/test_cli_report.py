"""`report`: what it reads, what it refuses, and where it writes."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_fakes import FAST, REFERENCE, FakeEvaluator, lines
from typer.testing import Result

import cuda_l1.evaluator
from cuda_l1.archive import Archive, RunDirectory
from cuda_l1.config import BenchSettings, Limits
from cuda_l1.types import Task

Run = Callable[..., Result]


@pytest.fixture
def judged(run: Run, reference: Path, tmp_path: Path) -> str:
    """An archive with one candidate beside its baselines; gives the name of the run that judged it."""
    candidate = tmp_path / "fast.py"
    candidate.write_text(f"{FAST}# speedup 2.5\n")
    assert run("evaluate", reference, candidate, "--baselines", "--device", "cpu").exit_code == 0
    with Archive.open(create=False) as archive:
        return next(record.run for record in archive.records(protocol="final"))


def test_everything_is_reported(run: Run, judged: str) -> None:
    result = run("report")
    assert result.exit_code == 0, result.stderr
    assert "test cpu, final, call clock" in result.stdout and "2.50x" in result.stdout
    assert "Published" not in result.stdout


def test_every_format_for_people_says_when_and_with_what_a_section_was_measured(
    run: Run, judged: str, tmp_path: Path
) -> None:
    assert run("report", "--html", tmp_path / "site").exit_code == 0
    shown = [run("report").stdout, run("report", "--format", "markdown").stdout]
    for text in (*shown, (tmp_path / "site" / "index.html").read_text()):
        for told in ("tasks: 1 of", "measured 20", "torch ", "rules ", "several fresh pairs", "one pair of processes"):
            assert told in text, told


def test_rows_of_other_rules_can_be_told_apart(run: Run, judged: str) -> None:
    with Archive.open() as archive:
        record, task = next(archive.records(protocol="final")), next(iter(archive.tasks()))
        place = record.evaluation.environment.model_copy(update={"rules": 3})
        archive.append(
            record.model_copy(update={"evaluation": record.evaluation.model_copy(update={"environment": place})}), task
        )
    rows = csv.DictReader(io.StringIO(run("report", "--format", "csv", "--protocol", "final").stdout))
    assert len({row["rules"] for row in rows if row["method"] == "file"}) == 2


def test_a_run_is_reported_with_the_baselines_of_its_tasks(run: Run, judged: str) -> None:
    result = run("report", judged, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    (ours,) = (row for row in rows if row["method"] == "file" and row["protocol"] == "final")
    assert float(ours["speedup_eager"]) == float(ours["speedup_best_baseline"]) == 2.5
    assert ours["best_baseline"] == "eager", "compile is as fast as eager here"
    assert {"eager", "compile"} <= {row["method"] for row in rows}


def test_json_is_one_object_a_line_with_the_summary_last(run: Run, judged: str) -> None:
    *objects, summary = lines(run("report", "--json", "--literature"))
    assert summary["kind"] == "summary" and summary["tasks"] == 1
    assert {o["kind"] for o in objects} == {"task", "table"}
    assert lines(run("report", "--format", "json"))[-1] == summary


def test_one_table_alone(run: Run, judged: str) -> None:
    (found,) = csv.DictReader(io.StringIO(run("report", judged, "--table", "headline", "--format", "csv").stdout))
    assert found["method"] == "file" and float(found["geometric mean"]) == 2.5
    *tables, summary = lines(run("report", judged, "--table", "headline", "--json"))
    assert [table["name"] for table in tables] == ["headline"] and summary["tasks"] == 1
    for name in ("nothing", ""):
        wrong = run("report", "--table", name)
        assert (wrong.exit_code, wrong.stdout) == (2, "") and "headline" in wrong.stderr


def test_one_protocol_alone(run: Run, judged: str) -> None:
    objects = lines(run("report", "--json", "--protocol", "screen"))
    assert objects[-1]["sections"] == ["test cpu, screen, call clock"]


@pytest.mark.parametrize("form", ["terminal", "markdown", "csv", "json"])
def test_a_report_goes_to_a_file(run: Run, judged: str, tmp_path: Path, form: str) -> None:
    target = tmp_path / "report.txt"
    result = run("report", "--format", form, "--out", target)
    assert (result.exit_code, result.stdout) == (0, "") and "written" in result.stderr
    assert "2.5" in target.read_text()


def test_several_archives_are_read_together(run: Run, judged: str, tmp_path: Path) -> None:
    own = tmp_path / "data" / "archive.sqlite"
    Archive.open(tmp_path / "other.sqlite").close()
    result = run("report", "--archive", own, "--archive", tmp_path / "other.sqlite", "--json")
    assert lines(result)[-1]["tasks"] == 1


def test_replies_are_read_once_and_repairs_are_no_samples(judged: str) -> None:
    from cuda_l1.report.selection import RunParts, select
    from cuda_l1.types import Reply

    with Archive.open() as archive:
        sha = next(archive.records(run=judged)).candidate.task_sha
        asked = {"run": judged, "task_sha": sha, "model": "m", "endpoint": "host:1", "prompt_sha": "p", "text": ""}
        first = Reply.model_validate({**asked, "number": 0, "problem": "no-code"})
        archive.replies.add([first, Reply.model_validate({**asked, "number": 1, "repairs": first.id})])
        found = select([archive, archive], [RunParts(judged)])
    assert [(one.model, one.candidate_id) for one in found.replies.values()] == [("m", None)]


def test_the_pages_show_what_a_model_wrote(run: Run, judged: str, tmp_path: Path) -> None:
    from cuda_l1.types import Reply

    with Archive.open() as archive:
        made = next(one.candidate for one in archive.records(run=judged) if not one.candidate.is_baseline)
        asked = {"run": judged, "task_sha": made.task_sha, "model": "m", "endpoint": "host:1", "prompt_sha": "p"}
        text = "## Performance Analysis\nIt waits for memory.\n"
        archive.replies.append(Reply.model_validate({**asked, "number": 0, "text": text, "candidate_id": made.id}))
    assert run("report", "--html", tmp_path / "site").exit_code == 0
    (page,) = (tmp_path / "site" / "tasks").glob("*.html")
    assert "It waits for memory." in page.read_text()


def test_an_empty_archive_and_an_empty_run_are_one_line(run: Run, judged: str, tmp_path: Path) -> None:
    Archive.open(tmp_path / "empty.sqlite").close()
    RunDirectory.create(tmp_path / "data" / "runs", Limits(), name="empty-run")
    for words in (["--archive", tmp_path / "empty.sqlite"], ["empty-run"], [judged, "empty-run"]):
        result = run("report", *words)
        assert (result.exit_code, result.stdout) == (1, ""), words
        assert len(result.stderr.splitlines()) == 1
    assert "run empty-run: no records" in run("report", "empty-run").stderr


def test_a_run_that_is_not_there_is_one_line(run: Run, judged: str) -> None:
    for words in (["no-such-run"], [judged, "no-such-run"]):
        result = run("report", *words)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith("cuda-l1: run no-such-run: no such run; there are ")
        assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("line", ['{"event": "judged"}', '{"event": "searched", "task": [1], "run": {}}'])
def test_a_damaged_run_is_one_line_and_the_rest_is_reported(run: Run, judged: str, tmp_path: Path, line: str) -> None:
    made = RunDirectory.create(tmp_path / "data" / "runs", BenchSettings(tasks="", device="cpu", baselines=()))
    (made.path / "events.jsonl").write_text(f"{line}\n")
    result = run("report", made.name)
    assert (result.exit_code, result.stdout) == (2, "") and "events.jsonl: damaged" in result.stderr
    everything = run("report")
    assert everything.exit_code == 0 and "events.jsonl: damaged" in everything.stderr and "2.50x" in everything.stdout


@pytest.fixture
def skipping(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Runs `bench` on a task that needs a library, and on others; gives the run's name."""

    class Measuring(FakeEvaluator):
        def footprint(self, task: Task) -> None:
            """Cannot be told."""

    monkeypatch.setattr(cuda_l1.evaluator, "Evaluator", Measuring)

    def bench(*others: str) -> str:
        folder = tmp_path / "suite"
        folder.mkdir()
        for number, head in enumerate(("import nowhere_to_be_found", *others)):
            (folder / f"task{number}.py").write_text(f"{head}\n{REFERENCE}")
        name: str = lines(run("bench", folder, "--json"))[-1]["run"]
        return name

    return bench


def test_a_run_that_skipped_everything_says_what_and_why(
    run: Run, skipping: Callable[..., str], tmp_path: Path
) -> None:
    name, site = skipping(), tmp_path / "site"
    why = "needs nowhere_to_be_found: pip install nowhere_to_be_found"
    for words in ([name], []):
        for form in ("terminal", "markdown", "json"):
            result = run("report", *words, "--format", form)
            assert result.exit_code == 1 and why in result.stdout and "task0" in result.stdout, form
            assert "no task has a verdict: 1 task skipped" in result.stderr
    summary = lines(run("report", name, "--json"))[-1]
    assert summary == {"kind": "summary", "sections": [], "tasks": 0, "skipped": {"task0": why}}
    (row,) = csv.DictReader(io.StringIO(run("report", name, "--table", "skipped", "--format", "csv").stdout))
    assert (row["task"], row["run"], row["why"]) == ("task0", name, why)
    assert run("report", name, "--html", site).exit_code == 1
    page = (site / "index.html").read_text()
    assert why in page and "0 tasks with a verdict. Made" in page and 'id="overview"' not in page


def test_what_a_run_skipped_stands_apart_from_what_it_judged(run: Run, skipping: Callable[..., str]) -> None:
    name = skipping("# compile speedup 2.0")
    result = run("report", name, "--json")
    *objects, summary = lines(result)
    assert result.exit_code == 0 and list(summary["skipped"]) == ["task0"] and summary["tasks"] == 1
    (table,) = [found for found in objects if found.get("name") == "skipped"]
    assert [row[0] for row in table["rows"]] == ["task0"]
    assert lines(run("report", "--json"))[-1]["skipped"] == summary["skipped"]
    assert lines(run("report", "--archive", _other_archive(), "--json"))[-1]["skipped"] == {}


def _other_archive() -> str:
    """An archive in the same folder, with a record of another task."""
    with Archive.open(create=False) as archive:
        record = next(archive.records())
        task = archive.task(record.candidate.task_sha)
    assert task is not None
    other = task.model_copy(update={"source": f"{task.source}# other\n"})
    where = Path(os.environ["CUDA_L1_ARCHIVE"]).with_name("other.sqlite")
    candidate = record.candidate.model_copy(update={"task_sha": other.sha})
    with Archive.open(str(where)) as archive:
        archive.append(record.model_copy(update={"candidate": candidate}), other)
    return str(where)


def test_a_clock_that_nothing_was_measured_by_is_one_line(run: Run, judged: str) -> None:
    result = run("report", "--clock", "device")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "device" in result.stderr


@pytest.mark.parametrize("words", [["--out", "."], ["--out", "nowhere/report.md"], ["--archive", "nothing.sqlite"]])
def test_a_mistake_is_one_line(run: Run, words: list[str]) -> None:
    result = run("report", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1


def test_other_protocols_stand_in_no_figure(run: Run, judged: str, tmp_path: Path) -> None:
    where = tmp_path / "data" / "archive.sqlite"
    with Archive.open(create=False) as archive:
        record = next(archive.records(run=judged, protocol="final"))
        task = archive.task(record.candidate.task_sha)
        assert task is not None
        other = record.evaluation.model_copy(update={"protocol": "kernelbench"})
        before = run("report", "--format", "csv").stdout
        archive.append(record.model_copy(update={"evaluation": other, "run": "replayed"}), task)
    after = run("report", "--format", "csv")
    assert after.stdout == before
    assert "1 under `kernelbench`" in after.stderr
    twice = run("report", "--format", "csv", "--archive", where, "--archive", where)
    assert (twice.stdout, twice.stderr) == (after.stdout, after.stderr), "a record in two archives is one"
    assert run("report", "replayed").exit_code == 1


def test_a_readme_gets_its_figures_between_the_markers(run: Run, judged: str, reference: Path, tmp_path: Path) -> None:
    from cuda_l1.report.readme import BEGIN, END

    readme = tmp_path / "README.md"
    readme.write_bytes(f"# Mine\r\n{BEGIN}\r\n{END}\r\nend\r\n".encode())
    result = run("report", "--readme", readme)
    assert (result.exit_code, result.stdout) == (0, ""), result.stderr
    once = readme.read_bytes()
    assert b"2.50x" in once and once.startswith(b"# Mine\r\n") and once.endswith(b"\r\nend\r\n")
    assert once.count(b"\n") == once.count(b"\r\n")
    assert run("report", "--readme", readme).exit_code == 0 and readme.read_bytes() == once
    screened = tmp_path / "screened.sqlite"
    options = ("--protocol", "screen", "--device", "cpu", "--archive", screened)
    assert run("evaluate", reference, tmp_path / "fast.py", *options).exit_code == 0
    refused = run("report", "--archive", screened, "--readme", readme)
    assert (refused.exit_code, len(refused.stderr.splitlines())) == (1, 1) and readme.read_bytes() == once
    (tmp_path / "plain.md").write_text("# Mine")
    for wrong in ("plain.md", "nothing.md", "."):
        result = run("report", "--readme", tmp_path / wrong)
        assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1), wrong


def test_pages_are_written_with_the_candidates_text(run: Run, judged: str, tmp_path: Path) -> None:
    result = run("report", "--html", tmp_path / "site")
    assert (result.exit_code, result.stdout) == (0, ""), result.stderr
    (candidate,) = (tmp_path / "site" / "tasks").glob("*/candidate.py")
    assert "# speedup 2.5" in candidate.read_text()
    assert run("report", "--html", tmp_path / "data").exit_code == 2, "holds the archive"
    assert (tmp_path / "data" / "archive.sqlite").exists()
