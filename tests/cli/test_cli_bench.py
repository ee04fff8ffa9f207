"""`bench` with a stand-in for the evaluator: a task's text says how each baseline fares on it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from cli_fakes import REFERENCE, FakeEvaluator, lines, timing
from typer.testing import Result

import cuda_l1.evaluator
from cuda_l1.archive import Archive
from cuda_l1.archive.faults import database_faults
from cuda_l1.config import FINAL, SCREEN, EvaluatorSettings, SearchSettings
from cuda_l1.errors import InfrastructureError, NoRoomError, TaskError
from cuda_l1.search import Result as SearchResult
from cuda_l1.search import verdict
from cuda_l1.search.events import Started
from cuda_l1.search.result import BaselineResult
from cuda_l1.types import Candidate, Evaluation, Origin, Reply, Task

Run = Callable[..., Result]


class BenchEvaluator(FakeEvaluator):
    """`# compile speedup 1.5` is for one baseline; `# bad task` and `# broken machine` are for all."""

    asked: ClassVar[list[str]] = []
    footprints: ClassVar[list[str]] = []
    living: ClassVar[list[Any]] = []

    def evaluate(self, task: Task, candidate: Candidate, **given: Any) -> Evaluation:
        name = candidate.label
        BenchEvaluator.asked.append(f"{task.name} {name} {given['protocol'].name}")
        if "# bad task" in task.source:
            raise TaskError(f"{task.id}: Model.forward raised ValueError: no")
        if "# broken machine" in task.source or f"# {name} broken machine" in task.source:
            raise InfrastructureError("the disk is full")
        beside_others = given.pop("beside_others", False)
        if f"# {name} fits alone" in task.source:
            if beside_others:
                raise NoRoomError(f"{task.id}: not beside other evaluators: out of memory")
            assert self.is_alone()
        own = "".join(line.replace(f"# {name} ", "# ") + "\n" for line in candidate.source.splitlines())
        return (
            super()
            .evaluate(task, candidate.model_copy(update={"source": own}), **given)
            .model_copy(update={"candidate_id": candidate.id})
        )

    def __init__(self, settings: EvaluatorSettings | None = None) -> None:
        super().__init__(settings)
        BenchEvaluator.living.append(self)

    def close(self) -> None:
        BenchEvaluator.living.remove(self)

    def is_alone(self) -> bool:
        return BenchEvaluator.living == [self]

    def footprint(self, task: Task) -> int | None:
        BenchEvaluator.footprints.append(task.name)
        scope: dict[str, Any] = {}
        exec("".join(line + "\n" for line in task.source.splitlines() if line.startswith("batch_size")), scope)
        return int(scope["batch_size"]) << 20 if "batch_size" in scope else None


@pytest.fixture(autouse=True)
def evaluator(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setattr(cuda_l1.evaluator, "Evaluator", BenchEvaluator)
    monkeypatch.setattr("cuda_l1.search.verdicts.RETRY_PAUSE_S", 0.0)
    BenchEvaluator.asked, BenchEvaluator.footprints, BenchEvaluator.living = [], [], []


@pytest.fixture
def suite(tmp_path: Path) -> Callable[..., str]:
    """A checkout with the given texts as problems of level 1, and its spec."""

    def make(*heads: str) -> str:
        folder = tmp_path / "checkout" / "KernelBench" / "level1"
        folder.mkdir(parents=True, exist_ok=True)
        for number, head in enumerate(heads, 1):
            (folder / f"{number}_Task.py").write_text(f"# task {number}\n{head}\n{REFERENCE}")
        return f"kernelbench:{tmp_path / 'checkout'}"

    return make


def test_rows_a_table_and_a_summary(run: Run, suite: Callable[..., str]) -> None:
    spec = suite("# compile speedup 1.5", "# compile outcome CRASHED", "import nowhere_to_be_found")
    got = run("bench", spec, "--json")
    *rows, summary = lines(got)
    assert got.exit_code == 0 and [row["kind"] for row in rows] == ["task"] * 3
    assert ": 3 tasks\n" in got.stderr and ": 1 task\n" in run("bench", f"{spec}#1/1").stderr
    assert [row["best_baseline"] for row in rows] == ["compile", "eager", None]
    assert [s["name"] for s in rows[0]["baselines"]] == ["eager", "compile"]  # no convolution, and bf16 not asked for
    assert rows[1]["baselines"][1]["outcome"] == "CRASHED"
    assert rows[2]["skipped"] == "needs nowhere_to_be_found: pip install nowhere_to_be_found"
    assert summary["kind"] == "summary" and (summary["tasks"], summary["judged"]) == (3, 2)
    best = summary["baselines"][-1]
    assert (
        best["name"] == "best baseline" and best["counted"] == 2 and best["geometric_mean"] == pytest.approx(1.5**0.5)
    )
    assert "level1/1_Task compile: ACCEPTED 1.50x" in got.stderr and "[3/3" in got.stderr

    shown = run("bench", spec)
    assert "speed-up against eager" in shown.stdout and "1.50x" in shown.stdout and "CRASHED" in shown.stdout
    assert "compile: geometric mean 1.50x over 1 of 2 sound tasks" in shown.stdout
    assert "skipped level1/3_Task: needs nowhere_to_be_found" in shown.stdout


def test_a_task_that_fetches_a_model_is_skipped_with_the_wall_named(run: Run, suite: Callable[..., str]) -> None:
    spec = suite("", "import nowhere_to_be_found\nconfig = AutoConfig.from_pretrained('gpt2')")
    *rows, summary = lines(run("bench", spec, "--json"))
    assert "behind the wall there is no network and no Hugging Face cache" in rows[1]["skipped"]
    assert (summary["tasks"], summary["judged"]) == (2, 1)
    assert all(total["tasks"] == 1 for total in summary["baselines"]), "it is no sound task"


def test_a_task_without_room_beside_others_is_judged_in_the_end(
    run: Run, suite: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuda_l1.api.pool.default_size", lambda devices, on_gpu: 3)
    ended = run(
        "bench", suite("# eager fits alone\n# compile fits alone", *[f"# {number}" for number in range(6)]), "--json"
    )
    *rows, summary = lines(ended)
    assert [row["skipped"] for row in rows] == [None] * 7 and summary["judged"] == 7
    assert BenchEvaluator.asked[-2:] == ["level1/1_Task eager screen", "level1/1_Task compile screen"]
    assert BenchEvaluator.asked.count("level1/1_Task eager screen") == 2
    assert "1_Task eager: not measured: " in ended.stderr and "1_Task eager: ACCEPTED" in ended.stderr


def test_of_fewer_evaluators_each_has_more_room(
    run: Run, suite: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuda_l1.api.pool.default_size", lambda devices, on_gpu: 3)
    spec = suite(*["# eager fits alone\n# compile fits alone"] * 3)
    *rows, summary = lines(run("bench", spec, "--json", "--at-once", 1))
    assert [row["skipped"] for row in rows] == [None] * 3 and summary["judged"] == 3
    assert len(BenchEvaluator.asked) == 6, "no verdict had to be asked for again"
    assert "--at-once" in run("bench", spec, "--at-once", 0).stderr


def test_a_baseline_that_found_no_memory_beside_others_is_judged_in_the_end(
    run: Run, suite: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuda_l1.api.pool.default_size", lambda devices, on_gpu: 3)
    marks = ["# compile fits alone", "# compile fits alone\n# compile outcome OUT_OF_MEMORY"]
    spec = suite(*marks, *[f"# {number}" for number in range(6)])
    *rows, _ = lines(run("bench", spec, "--json"))
    outcomes = [standing["outcome"] for row in rows for standing in row["baselines"] if standing["name"] == "compile"]
    assert outcomes == ["ACCEPTED", "OUT_OF_MEMORY", *["ACCEPTED"] * 6]
    assert {each.split()[0] for each in BenchEvaluator.asked[-2:]} == {"level1/1_Task", "level1/2_Task"}
    asked = len(BenchEvaluator.asked)
    assert run("bench", spec, "--json").exit_code == 0 and len(BenchEvaluator.asked) == asked


def test_a_module_that_does_not_build_is_no_task(run: Run, suite: Callable[..., str]) -> None:
    *rows, summary = lines(run("bench", suite("", "# eager outcome BUILD_FAILED"), "--json"))
    assert rows[1]["skipped"] == "does not build: it says so" and summary["judged"] == 1
    assert all(total["tasks"] == 1 for total in summary["baselines"])
    assert "level1/2_Task compile screen" not in BenchEvaluator.asked
    *rows, _ = lines(run("report", "--json"))
    apart = next(row for row in rows if row["kind"] == "table" and row["name"] == "apart")
    assert [row[1] for row in apart["rows"]] == ["does-not-build"]
    assert all(not row["sound"] for row in rows if row["kind"] == "task" and row["task"] == "level1/2_Task")


def test_nothing_is_paid_for_twice(run: Run, suite: Callable[..., str]) -> None:
    spec = suite("", "# bad task")
    first = run("bench", spec, "--json")
    assert sorted(BenchEvaluator.asked) == [
        "level1/1_Task compile screen", "level1/1_Task eager screen", "level1/2_Task eager screen",
    ]  # fmt: skip
    asked = len(BenchEvaluator.asked)
    again = run("bench", spec, "--json")
    assert len(BenchEvaluator.asked) == asked and lines(again) == lines(first)
    assert lines(again)[1]["skipped"] == "Model.forward raised ValueError: no"
    run("bench", spec, "--protocol", "final", "--baselines", "eager")
    assert sorted(BenchEvaluator.asked[asked:]) == ["level1/1_Task eager final", "level1/2_Task eager final"]


def test_an_interrupted_run_goes_on(run: Run, suite: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    spec = suite("", "", "")
    judged = FakeEvaluator.evaluate

    def interrupted(self: FakeEvaluator, task: Task, *args: Any, **given: Any) -> Evaluation:
        if len(BenchEvaluator.asked) > 3:
            raise KeyboardInterrupt
        return judged(self, task, *args, **given)

    with monkeypatch.context() as patch:
        patch.setattr(FakeEvaluator, "evaluate", interrupted)
        got = run("bench", spec)
    assert got.exit_code == 130 and "the same command goes on from there" in got.stderr
    with Archive.open() as archive:
        kept = {record.candidate.id for record in archive.records()}
    assert kept
    BenchEvaluator.asked = []
    assert run("bench", spec).exit_code == 0
    assert len(BenchEvaluator.asked) == 6 - len(kept)


def test_a_report_on_an_interrupted_run_says_which_tasks_it_has_not_come_to(
    run: Run, suite: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = suite(*[""] * 12)
    judged = FakeEvaluator.evaluate

    def interrupted(self: FakeEvaluator, task: Task, *args: Any, **given: Any) -> Evaluation:
        if len(BenchEvaluator.asked) > 3:
            raise KeyboardInterrupt
        return judged(self, task, *args, **given)

    with monkeypatch.context() as patch:
        patch.setattr(FakeEvaluator, "evaluate", interrupted)
        assert run("bench", spec).exit_code == 130
    *objects, summary = lines(run("report", "--json"))
    missing = summary["skipped"]
    assert len(missing) > 6 and summary["tasks"] + len(missing) == 12
    assert all("not reached" in why for why in missing.values())
    (table,) = [found for found in objects if found.get("name") == "skipped"]
    assert [row[0] for row in table["rows"]] == [*list(missing)[:5], f"{len(missing) - 5} more"]
    assert run("bench", spec).exit_code == 0
    after = lines(run("report", "--json"))[-1]
    assert (after["tasks"], after["skipped"]) == (12, {})


def test_classes_decide_what_may_be_the_best(run: Run, suite: Callable[..., str]) -> None:
    spec = suite("# bf16 speedup 3.0\n# bf16 class relaxed\n# compile speedup 1.5")
    (row, _) = lines(run("bench", spec, "--baselines", "bf16,compile", "--json"))
    assert [(s["name"], s["counts"]) for s in row["baselines"]] == [("eager", True), ("compile", True), ("bf16", False)]
    assert (
        row["best_baseline"] == "compile" and "(3.00x relaxed)" in run("bench", spec, "--baselines", "all,bf16").stdout
    )
    (row, _) = lines(run("bench", spec, "--precision", "relaxed", "--json"))
    assert row["best_baseline"] == "bf16"


def test_what_is_right_but_suspected_is_marked_everywhere(run: Run, suite: Callable[..., str]) -> None:
    spec = suite("# compile speedup 9.0\n# compile suspect overlap")
    got = run("bench", spec)
    assert "level1/1_Task compile: ACCEPTED, does not count 9.00x (suspect for overlap; " in got.stderr
    assert "(9.00x)" in got.stdout and "compile does not count: suspect for overlap" in got.stdout
    (row, _) = lines(run("bench", spec, "--json"))
    assert row["baselines"][1]["detail"] == "suspect for overlap" and row["best_baseline"] == "eager"
    relaxed = run("bench", suite("# bf16 speedup 3.0\n# bf16 class relaxed"), "--baselines", "bf16")
    assert "does not count" not in relaxed.stdout, "the class in the brackets says why"
    listed = run("archive", "list").stdout
    assert listed.count("ACCEPTED, does not count") == 2 and listed.count("ACCEPTED") == 4, listed


def test_unsound_tasks_stand_apart(run: Run, suite: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    judged = FakeEvaluator.evaluate
    monkeypatch.setattr(
        FakeEvaluator, "evaluate",
        lambda self, task, *args, **given: judged(self, task, *args, **given).model_copy(
            update={"task_flags": ("degenerate",) if "# degenerate" in task.source else ()}),
    )  # fmt: skip
    *_, summary = lines(run("bench", suite("# degenerate", "# compile speedup 2.0"), "--json"))
    assert summary["unsound"] == {"level1/1_Task": ["degenerate"]}
    assert summary["baselines"][1]["tasks"] == 1


def test_shards_are_one_run(run: Run, suite: Callable[..., str]) -> None:
    spec = suite("", "", "")
    first, second = (lines(run("bench", spec, "--shard", f"{i}/2", "--json")) for i in (1, 2))
    assert [row["task"] for row in first[:-1]] == ["level1/1_Task", "level1/3_Task"]
    assert [row["task"] for row in second[:-1]] == ["level1/2_Task"]
    assert first[-1]["run"] == second[-1]["run"]


def test_resume_names_what_differs(run: Run, suite: Callable[..., str]) -> None:
    spec = suite("", "")
    name = lines(run("bench", spec, "--json"))[-1]["run"]
    assert run("bench", spec, "--resume", name).exit_code == 0
    other = run("bench", f"{spec}#1/1", "--protocol", "final", "--precision", "tf32", "--resume", name)
    assert other.exit_code == 2 and "precision default, now tf32; protocol screen, now final; tasks " in other.stderr
    unknown = run("bench", spec, "--resume", "nope")
    assert unknown.exit_code == 2 and f"there are {name}" in unknown.stderr


@pytest.mark.parametrize("name", ["nope", "..", "a/b", ""])
def test_a_run_that_is_not_there_leaves_nothing_behind(
    run: Run, suite: Callable[..., str], tmp_path: Path, name: str
) -> None:
    result = run("bench", suite(""), "--resume", name)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1) and "no such run" in result.stderr
    assert not (tmp_path / "data").exists()


def test_tasks_that_take_too_much_are_scaled_or_skipped(run: Run, suite: Callable[..., str]) -> None:
    inputs = "batch_size = 64\n\n\ndef get_inputs():\n    return [torch.randn(batch_size, 4)]\n"
    spec = suite("", "")
    path = Path(spec.partition(":")[2]) / "KernelBench" / "level1" / "1_Task.py"
    path.write_text(path.read_text() + inputs)
    got = run("bench", spec, "--max-gib", "0.01", "--json")
    row, unknown, _ = lines(got)
    assert row["task"] == "level1/1_Task[batch_size=8]"
    assert row["scaled"] == (
        "a call takes 0.0625 GiB, more than --max-gib 0.01: batch_size=8 instead of 64 (0.00781 GiB)"
    )
    assert unknown["scaled"] is None and unknown["skipped"] is None  # what cannot be told is tried
    measured = len(BenchEvaluator.footprints)
    shown = run("bench", spec, "--max-gib", "0.01")
    assert shown.exit_code == 0 and len(BenchEvaluator.footprints) == measured
    assert "of these tasks scaled down" in shown.stdout and "scaled down" not in run("bench", spec).stdout
    path.write_text(path.read_text().replace("batch_size = 64", "batch_size = 1 << 14").replace("randn(b", "zeros(b"))
    got = run("bench", f"{spec}#1/1", "--json")
    assert got.exit_code == 1 and "--max-gib scales it down" in lines(got)[0]["skipped"]


def test_what_is_scaled_in_the_end_is_not_reported_as_skipped(
    run: Run, suite: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = suite("")
    path = Path(spec.partition(":")[2]) / "KernelBench" / "level1" / "1_Task.py"
    path.write_text(
        f"{path.read_text()}batch_size = 64\n\n\ndef get_inputs():\n    return [torch.randn(batch_size, 4)]\n"
    )

    def skipped() -> list[str]:
        name = lines(run("bench", spec, "--max-gib", "0.01", "--json"))[-1]["run"]
        return list(lines(run("report", name, "--json"))[-1]["skipped"])

    with monkeypatch.context() as patch:
        patch.setattr("cuda_l1.api.fitting.scaled_to", lambda *_: None)
        assert skipped() == ["level1/1_Task"]
    assert skipped() == []


def test_progress_has_the_figures_of_the_clock(
    run: Run, suite: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = BenchEvaluator.evaluate
    gpu = FakeEvaluator.environment.model_copy(update={"device": "cuda", "device_name": "test gpu"})

    def two_clocks(self: BenchEvaluator, *given: Any, **more: Any) -> Evaluation:
        found = own(self, *given, **more)
        on_device = timing(4.0, SCREEN, "eager").model_copy(update={"clock": "device"})
        return found.model_copy(update={"timings": (*found.timings, on_device)})

    monkeypatch.setattr(BenchEvaluator, "environment", gpu)
    monkeypatch.setattr(BenchEvaluator, "evaluate", two_clocks)
    for number, (words, figure) in enumerate([((), "4.00x"), (("--clock", "call"), "1.50x")]):
        told = run("bench", suite("# compile speedup 1.5"), *words, "--archive", f"{number}.sqlite").stderr
        assert f"level1/1_Task compile: ACCEPTED {figure} (" in told and f"best baseline compile {figure}" in told


def test_a_bundle_adds_a_column_to_another_archive(run: Run, suite: Callable[..., str], tmp_path: Path) -> None:
    spec, bundle = suite("", ""), tmp_path / "mine.sqlite"
    assert run("bench", f"{spec}#1/2").exit_code == 0  # of another run, and still part of this one's rows
    got = run("bench", spec, "--bundle", bundle)
    assert f"written: {bundle}, 4 new records" in got.stdout
    merged = run("archive", "merge", bundle, "--archive", tmp_path / "other.sqlite")
    assert merged.exit_code == 0 and "4 new records" in merged.stdout
    assert "0 new records" in run("bench", spec, "--bundle", bundle).stdout


def test_one_fault_of_the_machine_is_named_and_three_in_a_row_end_it(run: Run, suite: Callable[..., str]) -> None:
    spec = suite("# compile broken machine", "")
    got = run("bench", spec, "--json")
    row, other, _ = lines(got)
    assert got.exit_code == 0 and row["baselines"][1]["detail"] == "not measured: the disk is full"
    assert other["best_baseline"] == "eager"
    got = run("bench", suite(*["# broken machine"] * 3))
    assert got.exit_code == 3 and "the disk is full" in got.stderr


def fill_the_disk(disk: pytest.MonkeyPatch, fault: str = "SQLITE_FULL") -> None:
    """An archive takes one more record."""
    keep, kept = Archive.append, 1

    def append(archive: Archive, *given: Any) -> bool:
        nonlocal kept
        if kept:
            kept -= 1
            return keep(archive, *given)
        error = sqlite3.OperationalError("no")
        error.sqlite_errorname = fault
        with database_faults(archive.name):
            raise error

    disk.setattr(Archive, "append", append)


def test_archives_beside_one_folder_of_runs_are_told_apart(
    run: Run, suite: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same run, whole in one archive and interrupted in the other."""
    whole, part = ("--archive", tmp_path / "whole.sqlite"), ("--archive", tmp_path / "part.sqlite")
    bench = ("bench", suite("", "", ""), "--baselines", "eager", "--at-once", 1)
    name = lines(run(*bench, *whole, "--json"))[-1]["run"]
    with monkeypatch.context() as disk:
        fill_the_disk(disk)
        assert run(*bench, *part).exit_code == 3

    def missing(*words: Any) -> list[str]:
        return list(lines(run("report", *words, "--json"))[-1]["skipped"])

    unreached = ["level1/2_Task", "level1/3_Task"]
    assert missing(name, *part) == missing(*part) == unreached and not missing(name, *whole)
    run("bench", f"{bench[1]}#1/1", *whole)
    assert missing(*part) == unreached, "what was asked for in the other archive is none of this one's"
    (tmp_path / "part.sqlite").rename(tmp_path / "renamed.sqlite")
    assert missing(name, "--archive", tmp_path / "renamed.sqlite") == unreached
    assert run(*bench, "--archive", tmp_path / "renamed.sqlite").exit_code == 0
    assert not missing("--archive", tmp_path / "renamed.sqlite")


@pytest.mark.parametrize("fault", ["SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_READONLY"])
def test_verdicts_that_cannot_be_kept_are_not_paid_for(
    run: Run, suite: Callable[..., str], monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    with monkeypatch.context() as disk:
        fill_the_disk(disk, fault)
        got = run("bench", suite("", "", ""), "--baselines", "eager", "--at-once", 1)
    assert got.exit_code == 3 and len(BenchEvaluator.asked) == 2
    assert "archive.sqlite" in got.stderr.splitlines()[-1] and "skipped" not in got.stderr
    assert run("bench", suite("", "", ""), "--baselines", "eager").exit_code == 0 and len(BenchEvaluator.asked) == 4


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nosuch"], "neither a file nor a built-in task"),
        (["kernelbench:nowhere"], "no such folder"),
        (["SPEC#level2"], "names no task; there are level1/1"),
        (["SPEC", "--shard", "3/2"], "give I/N"),
        (["SPEC", "--shard", "2/2"], "none is left for this shard"),
        (["SPEC", "--baselines", "nope"], "known are eager"),
        (["SPEC", "--baselines", ","], "names none"),
        (["SPEC", "--baselines", "cuda-graph"], "not known on cpu"),
        (["SPEC", "--bundle", "."], "is a folder"),
        (["SPEC", "--bundle", "no/such.sqlite"], "there is no folder"),
        (["SPEC", "--clock", "device"], "a CPU has no device clock"),
        (["SPEC", "--optimize", "--proposer", "nobody"], "unknown proposer"),
        (["SPEC", "--proposer", "llm"], "only a search asks proposers; add --optimize"),
        (["SPEC", "--budget", "10m"], "--budget: only a search has one; add --optimize"),
        (["SPEC", "--budget", "60s"], "--budget: only a search has one; add --optimize"),
        (["SPEC", "--model", "m"], "only --proposer llm asks a model"),
        (["SPEC", "--max-gib", "0"], "max-gib"),
        (["SPEC", "--limits", "x=1"], "unknown limit"),
    ],
)
def test_bad_input(run: Run, suite: Callable[..., str], words: list[str], told: str) -> None:
    spec = suite("")
    got = run("bench", *(word.replace("SPEC", spec) for word in words))
    assert got.exit_code == 2 and told in got.stderr and not BenchEvaluator.asked


def test_a_bundle_never_overwrites_another_file(run: Run, suite: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine\n" * 200)
    got = run("bench", suite(""), "--bundle", tmp_path / "notes.txt")
    assert got.exit_code == 2 and not BenchEvaluator.asked and (tmp_path / "notes.txt").read_text() == "mine\n" * 200


def reply_about(task: Task, run: str) -> Reply:
    return Reply(run=run, task_sha=task.sha, model="m", endpoint="localhost:1", prompt_sha="p", number=0, text="none")


def result_of_search(task: Task, archive: Archive, evaluator: Any, run: str) -> SearchResult:
    """Of one candidate, which has the verdict of a run."""
    origin = Origin(proposer="techniques", techniques=("fusion",))
    text = f"{task.source}\n# speedup 3.0\n"
    candidate = Candidate(task_sha=task.sha, task_id=task.id, source=text, origins=(origin,))
    final = verdict(task, candidate, protocol=FINAL, archive=archive, evaluator=evaluator, run=run)
    return SearchResult(
        task_id=task.id, task_sha=task.sha, run="searching", clock="call", winner=final, final=final,
        baselines=(BaselineResult(name="eager", candidate_id="e", outcome=None),), best_baseline="eager",
        stop_reason="exhausted", evaluations=1, duplicates=0, wall_s=1.0,
    )  # fmt: skip


def test_a_search_adds_our_column_and_is_not_made_twice(
    run: Run, suite: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    searched: list[str] = []

    def run_search(task: Task, settings: SearchSettings, *, archive: Archive, evaluator: Any, **_: Any) -> SearchResult:
        """One candidate, judged as a search would."""
        searched.append(task.name)
        if "# unsearchable" in task.source:
            raise TaskError(f"{task.id}: cannot be captured")
        archive.replies.append(reply_about(task, "searching"))
        archive.replies.append(reply_about(task, "another run"))
        return result_of_search(task, archive, evaluator, "searching")

    monkeypatch.setattr("cuda_l1.api.bench_extras.run_search", run_search)
    spec, words = suite("", "# unsearchable"), ("--optimize", "--budget", "5s", "--bundle", tmp_path / "b.sqlite")
    first = lines(run("bench", spec, *words, "--json"))
    ours, without = (row["ours"] for row in first[:-1])
    assert (ours["technique"], ours["speedup_eager"], ours["best_baseline"]) == ("fusion", 3.0, "eager")
    assert ours["speedup_best_baseline"] == 3.0 and ours["speedup_best_baseline_low"] == pytest.approx(2.94)
    assert without["speedup_eager"] is None and without["detail"] == "cannot be captured"
    with Archive.open(tmp_path / "b.sqlite") as bundled:
        assert ours["record"] in {record.id for record in bundled.records()}
        assert [reply.run for reply in bundled.replies.all()] == ["searching"]
    assert lines(run("bench", spec, *words, "--json")) == first
    assert searched == ["level1/1_Task", "level1/2_Task", "level1/2_Task"]  # what failed is tried again
    reported = [row for row in lines(run("report", first[-1]["run"], "--json")) if row["kind"] == "task"]
    assert [row["task"] for row in reported if row["method"] == "techniques"] == ["level1/1_Task"]
    shown = run("bench", spec, *words)
    assert (
        "ours vs eager" in shown.stdout
        and "3.00x (2.94 to 3.06)" in shown.stdout
        and "cannot be captured" in shown.stdout
    )


def test_what_a_search_finds_may_have_been_judged_before(
    run: Run, suite: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run_search(task: Task, settings: SearchSettings, *, archive: Archive, evaluator: Any, **_: Any) -> SearchResult:
        return result_of_search(task, archive, evaluator, "before")

    monkeypatch.setattr("cuda_l1.api.bench_extras.run_search", run_search)
    words = ("--optimize", "--budget", "5s", "--bundle", tmp_path / "b.sqlite", "--json")
    *rows, summary = lines(run("bench", suite(""), *words))
    reported = [row for row in lines(run("report", summary["run"], "--json")) if row["kind"] == "task"]
    assert [row["speedup_eager"] for row in reported if row["method"] == "techniques"] == [3.0]
    with Archive.open(tmp_path / "b.sqlite") as bundled:
        assert rows[0]["ours"]["record"] in {record.id for record in bundled.records()}


def test_a_runs_report_has_all_its_tasks_whoever_paid_for_them(run: Run, suite: Callable[..., str]) -> None:
    spec = suite("# compile speedup 1.5", "# compile speedup 2.0")
    assert run("bench", f"{spec}#1/1").exit_code == 0
    for selected in (spec, f"{spec}#1/2"):  # of the second everything is known
        *rows, summary = lines(run("bench", selected, "--json"))
        found = lines(run("report", summary["run"], "--json"))
        reported = {row["task"]: row["speedup_eager"] for row in found if row.get("method") == "compile"}
        assert reported == {row["task"]: row["baselines"][1]["speedup"] for row in rows}
    assert run("report", "no-such-run").exit_code == 2


def test_a_search_that_found_nothing_counts_for_its_own_archive(
    run: Run, suite: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    searched: list[str] = []

    def run_search(task: Task, settings: SearchSettings, *, archive: Archive, evaluator: Any, **_: Any) -> SearchResult:
        searched.append(task.name)
        candidate = Candidate(task_sha=task.sha, task_id=task.id, source=f"{task.source}\n# speedup 0.5\n", origins=())
        verdict(task, candidate, protocol=FINAL, archive=archive, evaluator=evaluator, run="searching")
        return SearchResult(
            task_id=task.id, task_sha=task.sha, run="searching", clock="call", winner=None, final=None,
            baselines=(), best_baseline="eager", stop_reason="exhausted", evaluations=1, duplicates=0, wall_s=1.0,
        )  # fmt: skip

    monkeypatch.setattr("cuda_l1.api.bench_extras.run_search", run_search)
    spec = suite("")
    for archive in ("one", "one", "two", "two"):
        got = run("bench", spec, "--optimize", "--archive", tmp_path / f"{archive}.sqlite", "--json")
        assert lines(got)[0]["ours"]["detail"] == "nothing faster was found that holds (exhausted)"
    assert searched == ["level1/1_Task"] * 2


def test_a_runs_report_has_what_an_interrupted_search_recorded(
    run: Run, suite: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run_search(task: Task, *_: Any, archive: Archive, evaluator: Any, on_event: Any, **__: Any) -> SearchResult:
        on_event(Started(task.id, "searching", (), (), None, None))
        origin = Origin(proposer="techniques", techniques=("fusion",))
        text = f"{task.source}\n# speedup 3.0\n"
        candidate = Candidate(task_sha=task.sha, task_id=task.id, source=text, origins=(origin,))
        verdict(task, candidate, protocol=SCREEN, archive=archive, evaluator=evaluator, run="searching")
        raise KeyboardInterrupt

    monkeypatch.setattr("cuda_l1.api.bench_extras.run_search", run_search)
    assert run("bench", suite(""), "--optimize").exit_code == 130
    (events,) = (tmp_path / "data" / "runs").glob("*/events.jsonl")
    found = lines(run("report", events.parent.name, "--json"))
    assert [row["speedup_eager"] for row in found if row.get("method") == "techniques"] == [3.0]


def test_finals_of_baselines_are_neither_best_nor_exported(run: Run, suite: Callable[..., str], tmp_path: Path) -> None:
    spec = suite("# compile speedup 1.5")
    assert run("bench", spec, "--protocol", "final").exit_code == 0
    none = run("archive", "best")
    assert none.exit_code == 1 and not none.stdout and "holds no verified final; run `cuda-l1 optimize`" in none.stderr
    none = run("archive", "best", "level1/1_Task")
    assert none.exit_code == 1 and not none.stdout and "no verified final of kernelbench/level1/1_Task" in none.stderr
    refused = run("archive", "export", "--release", tmp_path / "ours.jsonl")
    assert refused.exit_code == 1 and not (tmp_path / "ours.jsonl").exists()
    fast = tmp_path / "fast.py"
    fast.write_text(REFERENCE + "\n\nModelNew = Model\n# speedup 3.0\n")
    reference = Path(spec.partition(":")[2]) / "KernelBench" / "level1" / "1_Task.py"
    assert run("evaluate", reference, fast).exit_code == 0
    both = run("archive", "export", "--release", tmp_path / "ours.jsonl", "--out", "fast.py")
    assert both.exit_code == 2 and "--out fast.py: a release goes where --release says" in both.stderr
    written = run("archive", "export", "--release", tmp_path / "ours.jsonl", "--json")
    assert written.exit_code == 0 and lines(written)[-1]["kernels"] == 1
    (row,) = map(json.loads, (tmp_path / "ours.jsonl").read_text().splitlines())
    assert (row["level_id"], row["task_id"], row["score_default"]) == (1, 1, 3.0)
    assert run("tasks", "list", f"release:{tmp_path}/ours.jsonl").exit_code == 0
    again = run("archive", "export", "--release", tmp_path / "ours.jsonl")
    assert again.exit_code == 2 and "exists" in again.stderr
    assert run("archive", "export", "--release", tmp_path / "b.jsonl", "--device-name", "x").exit_code == 2
    assert "name a task" in run("archive", "export").stderr
