"""`report`: what it reads, what it refuses, and where it writes."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_fakes import FAST, lines
from typer.testing import Result

from cuda_l1.archive import Archive

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


def test_an_empty_archive_and_an_empty_run_are_one_line(run: Run, judged: str, tmp_path: Path) -> None:
    Archive.open(tmp_path / "empty.sqlite").close()
    for words in (["--archive", tmp_path / "empty.sqlite"], ["no-such-run"], [judged, "no-such-run"]):
        result = run("report", *words)
        assert (result.exit_code, result.stdout) == (1, ""), words
        assert len(result.stderr.splitlines()) == 1
    assert "no-such-run" in run("report", "no-such-run").stderr


def test_a_clock_that_nothing_was_measured_by_is_one_line(run: Run, judged: str) -> None:
    result = run("report", "--clock", "device")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "device" in result.stderr


@pytest.mark.parametrize("words", [["--out", "."], ["--out", "nowhere/report.md"], ["--archive", "nothing.sqlite"]])
def test_a_mistake_is_one_line(run: Run, words: list[str]) -> None:
    result = run("report", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1


def test_other_protocols_stand_in_no_figure(run: Run, judged: str) -> None:
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
    assert run("report", "replayed").exit_code == 1


def test_a_readme_gets_its_figures_between_the_markers(run: Run, judged: str, tmp_path: Path) -> None:
    from cuda_l1.report.readme import BEGIN, END

    readme = tmp_path / "README.md"
    readme.write_bytes(f"# Mine\r\n{BEGIN}\r\n{END}\r\nend\r\n".encode())
    result = run("report", "--readme", readme)
    assert (result.exit_code, result.stdout) == (0, ""), result.stderr
    once = readme.read_bytes()
    assert b"2.50x" in once and once.startswith(b"# Mine\r\n") and once.endswith(b"\r\nend\r\n")
    assert once.count(b"\n") == once.count(b"\r\n")
    assert run("report", "--readme", readme).exit_code == 0 and readme.read_bytes() == once
    assert run("report", "--readme", readme, "--protocol", "screen").exit_code == 1 and readme.read_bytes() == once
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
