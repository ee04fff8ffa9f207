"""`cuda-l1 optimize`: the file, the figures, exit codes, and that an interrupted run goes on."""

from __future__ import annotations

import ast
import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import FAST, PLACE, FakeEvaluator, lines
from typer.testing import Result

import cuda_l1.api.proposers as registry
from cuda_l1.config import Limits, Protocol
from cuda_l1.export.header import split_header
from cuda_l1.proposers.techniques import REGISTRY
from cuda_l1.types import Candidate, Origin, Record, Task

Run = Callable[..., Result]


class Listed:
    """Proposes texts in order."""

    name = "listed"

    def __init__(self, heads: Sequence[str], failures: Sequence[str] = ()) -> None:
        self.heads, self.failures = heads, failures

    def propose(self, task: Task, history: Sequence[Record], until: float) -> Candidate | None:
        seen = {record.candidate.id for record in history}
        for head in self.heads:
            made = Candidate(
                task_sha=task.sha,
                task_id=task.id,
                source=f"{task.source}\n{head}\n{FAST}",
                origins=(Origin(proposer="listed", techniques=("mark",)),),
            )
            if made.id not in seen:
                return made
        return None


@pytest.fixture
def propose(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets `--proposer techniques` propose these texts."""
    return lambda *heads, **more: monkeypatch.setitem(
        registry.PROPOSERS, "techniques", lambda *_: Listed(heads, **more)
    )


def test_a_module_in_train_mode_is_told_how_to_be_measured_for_inference(
    run: Run, reference: Path, propose: Callable[..., None]
) -> None:
    propose("# speedup 2.0")
    assert "self.eval()" not in run("optimize", reference, "--device", "cpu").stderr
    reference.write_text("# random\n" + reference.read_text())
    told = run("optimize", reference, "--device", "cpu", "--json").stderr
    assert told.count("call self.eval() at the end of its __init__") == 1


def test_it_writes_the_measured_text_under_its_evidence(
    run: Run, reference: Path, propose: Callable[..., None]
) -> None:
    propose("# speedup 2.0", "# speedup 3.0")
    result = run("optimize", reference, "--device", "cpu", "--json")
    assert result.exit_code == 0, result.stderr
    *records, summary = lines(result)
    assert summary["result"] == "beats-best-baseline" and summary["technique"] == "mark"
    assert (summary["outcome"], summary["precision_class"]) == ("ACCEPTED", "fp32")
    assert summary["speedup_eager"] == 3.0 and summary["speedup_eager_low"] == 2.94
    assert summary["speedup_best_baseline"] == 3.0 and summary["best_baseline"] == "eager"
    final = next(r for r in records if r["id"] == summary["record"])
    assert final["evaluation"]["protocol"] == "final"
    text = Path("ref_optimized.py").read_text()
    header, body = split_header(text)
    assert body == final["candidate"]["source"]
    assert hashlib.sha256(body.encode()).hexdigest() in header
    for fact in ("3.00x (2.94 to 3.06)", "test cpu", "2.13.0+cpu", "final", "fp32", summary["record"]):
        assert fact in header
    names = {node.name for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}
    assert {"Model", "ModelNew", "_Optimized"} <= names


def test_people_get_a_table_and_the_path(run: Run, reference: Path, propose: Callable[..., None]) -> None:
    propose("# speedup 1.999")
    result = run("optimize", reference, "--device", "cpu", "--out", "fast.py")
    assert result.exit_code == 0
    assert "1.99x (1.95 to 2.03)" in result.stdout, "rounded towards 1"
    assert "written: fast.py" in result.stdout and Path("fast.py").exists()
    assert "us a call" in result.stdout
    assert "mark: ACCEPTED" in result.stderr and "baseline eager" in result.stderr


def test_what_could_not_be_built_is_told(run: Run, reference: Path, propose: Callable[..., None]) -> None:
    failures = [f"fusion + t{i}: Unsupported: a [sort] of i8" for i in range(7)]
    propose("# speedup 2.0", failures=failures)
    told = run("optimize", reference, "--device", "cpu").stdout.splitlines()
    assert [line for line in told if "fusion" in line] == [f"could not be proposed: {line}" for line in failures[:5]]
    assert "and 2 more that could not be proposed; --json lists all" in told
    assert lines(run("optimize", reference, "--device", "cpu", "--json"))[-1]["failures"] == failures


def test_the_file_is_called_as_the_task_is(run: Run, reference: Path, propose: Callable[..., None]) -> None:
    named = reference.rename(reference.parent / "mein Modell größe-2.py")
    propose("# speedup 2.0")
    result = run("optimize", named.name, "--device", "cpu")
    assert result.exit_code == 0 and Path("mein_Modell_größe_2_optimized.py").exists()
    assert "mein_Modell_größe_2".isidentifier()


def test_nothing_faster_is_exit_code_1_and_no_file(run: Run, reference: Path, propose: Callable[..., None]) -> None:
    propose("# speedup 0.5", "# outcome CRASHED", "# speedup 9.0\n# suspect clock-mismatch")
    result = run("optimize", reference, "--device", "cpu", "--json")
    assert result.exit_code == 1
    summary = lines(result)[-1]
    assert summary["result"] == "no-improvement" and summary["path"] is None
    assert summary["speedup_eager"] is None
    why = "it is suspect: clock-mismatch: it says so"
    assert [(found["screen_speedup"], found["why"]) for found in summary["not_confirmed"]] == [(9.0, why)]
    again = run("optimize", reference, "--device", "cpu")
    assert f"mark was 9.00x in its screen; {why}" in again.stdout.splitlines()
    (line,) = [line for line in again.stderr.splitlines() if "9.00x" in line and "does not count" in line]
    assert line.startswith("mark: ACCEPTED, does not count (known)  9.00x") and "(suspect for clock-mismatch)" in line
    assert not Path("ref_optimized.py").exists()


def test_a_search_that_tried_nothing_does_not_say_that_nothing_is_faster(
    run: Run, reference: Path, propose: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    propose("# speedup 2.0")
    evaluate = FakeEvaluator.evaluate

    def slowly(*args: Any, **more: Any) -> Any:
        time.sleep(0.3)
        return evaluate(*args, **more)

    monkeypatch.setattr(FakeEvaluator, "evaluate", slowly)
    result = run("optimize", reference, "--device", "cpu", "--budget", "0.2s")
    assert result.exit_code == 1
    assert "nothing was tried: no time was left for a candidate; give more with --budget" in result.stdout
    assert "; 1 evaluation in" in result.stdout and "holds" not in result.stdout


def test_an_interrupted_run_goes_on_and_a_finished_one_is_measured_anew(
    run: Run, reference: Path, propose: Callable[..., None]
) -> None:
    propose("# speedup 2.0", "# raise KeyboardInterrupt")
    stopped = run("optimize", reference, "--device", "cpu", "--json")
    # A confirmed winner is handed out even so; its run has not ended.
    assert stopped.exit_code == 130 and "same command" in stopped.stderr
    propose("# speedup 2.0", "# speedup 4.0")
    resumed = lines(run("optimize", reference, "--device", "cpu", "--json"))[-1]
    assert resumed["speedup_eager"] == 4.0
    assert resumed["duplicates"] >= 1, "what was paid for is not paid for again"
    again = lines(run("optimize", reference, "--device", "cpu", "--json"))[-1]
    assert again["run"] != resumed["run"] and again["evaluations"] == 1, "only the new final"


def test_limits_and_the_finals_budget_reach_the_evaluator(
    run: Run, reference: Path, propose: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    budgets: list[float] = []
    original = FakeEvaluator.evaluate

    def noting(self: FakeEvaluator, task: Task, made: Candidate, *, protocol: Protocol, **rest: Any) -> Any:
        budgets.extend([protocol.budget_s] if protocol.name == "final" else [])
        return original(self, task, made, protocol=protocol, **rest)

    monkeypatch.setattr(FakeEvaluator, "evaluate", noting)
    propose("# speedup 2.0")
    given = ["--limits", "verdict_s=600, memory_bytes=34359738368", "--final-budget", "7s", "--budget", "5m"]
    assert run("optimize", reference, "--device", "cpu", *given).exit_code == 0
    limits = FakeEvaluator.settings.limits
    assert (limits.verdict_s, limits.memory_bytes, limits.build_s) == (600.0, 32 << 30, Limits().build_s)
    Path("candidate.py").write_text("# speedup 3.0\n" + FAST)
    assert run("evaluate", reference, "candidate.py", "--device", "cpu", *given[:4]).exit_code == 0
    assert FakeEvaluator.settings.limits == limits
    assert budgets == [7.0, 7.0]


def test_without_a_wall_nothing_is_searched(
    run: Run, reference: Path, propose: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeEvaluator, "environment", PLACE.model_copy(update={"rung": "R0"}))
    propose("# speedup 2.0")
    result = run("optimize", reference, "--device", "cpu")
    assert result.exit_code == 3 and not Path("ref_optimized.py").exists()
    (line,) = result.stderr.splitlines()
    assert "the sandbox rung is R0" in line and "`cuda-l1 doctor` says how to raise it" in line


def test_a_file_of_ones_own_is_never_overwritten(run: Run, reference: Path, propose: Callable[..., None]) -> None:
    propose("# speedup 2.0")
    Path("mine.py").write_text("precious = 1\n")
    result = run("optimize", reference, "--device", "cpu", "--out", "mine.py")
    assert result.exit_code == 2 and "mine.py exists" in result.stderr
    assert Path("mine.py").read_text() == "precious = 1\n"
    assert run("optimize", reference, "--device", "cpu", "--out", "ours.py").exit_code == 0
    assert run("optimize", reference, "--device", "cpu", "--out", "ours.py").exit_code == 0


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--budget", "0"], 2, "nothing fits"),
        (["--budget", "0s"], 2, "nothing fits"),
        (["--budget", "-5s"], 2, "give a time"),
        (["--budget", "99999999999999999999h"], 2, "is more than a year; give e.g. 1h"),
        (["--budget", "9999999999999999"], 2, "is more than 1000000000 evaluations"),
        (["--budget", "soon"], 2, "give a time"),
        (["--budget", "2.5"], 2, "write a unit"),
        (["--clock", "device"], 2, "no device clock"),
        (["--clock", "sundial"], 2, "sundial"),
        (["--proposer", "oracle"], 2, "known are techniques"),
        (["--proposer", " , "], 2, "no proposer is named; known are techniques"),
        (["--proposer", "techniques:alchemy"], 2, "unknown technique `alchemy`; `cuda-l1 optimize TASK --prop"),
        (["--proposer", "techniques:fold_batchnorm"], 2, "did you mean fold_batch_norm or fuse_norm? `cuda-l1"),
        (["--proposer", "techniques:"], 2, f"names no technique; known are {', '.join(REGISTRY)}"),
        (["--proposer", "techniques:+"], 2, "techniques:+ names no technique; known are diagonal_matmul, "),
        (["--device", "tpu"], 2, "expected auto, cpu, cuda"),
        (["--device", "cuda"], 3, "no NVIDIA GPU"),
        (["--device", "cuda:7"], 3, "no NVIDIA GPU"),
        (["--out", "nowhere/fast.py"], 2, "no folder nowhere"),
        (["--out", "."], 2, "is a folder"),
        (["--precision", "fp7"], 2, "fp7"),
        (["--limits", "patience_s=3"], 2, "unknown limit `patience_s`; known are build_s, first_call_s"),
        (["--limits", "verdict_s=soon"], 2, "give a positive number of seconds"),
        (["--limits", "verdict_s=-1"], 2, "give a positive number of seconds"),
        (["--limits", "verdict_s=inf"], 2, "give a positive number of seconds"),
        (["--limits", "memory_bytes=1.5"], 2, "give a positive whole number"),
        (["--limits", "verdict_s=1e9"], 2, "must be at most 31622400.0; leave it out for 300"),
        (["--limits", "verdict_s=60,verdict_s=90"], 2, "`verdict_s` is given twice, 60 and 90; give it once"),
        (["--limits", "verdict_s"], 2, "give a positive number of seconds"),
        (["--final-budget", "20"], 2, "--final-budget 20: give a time"),
    ],
)
def test_a_mistake_is_one_line_and_an_exit_code(
    run: Run, reference: Path, words: list[str], code: int, told: str
) -> None:
    device = [] if "--device" in words else ["--device", "cpu"]
    result = run("optimize", reference, *device, *words)
    assert result.exit_code == code
    assert told in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr and not result.stdout


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "missing.py"),
        ("def get_inputs():\n    return []\n", "Model"),
        ("class Model:\n    pass\n", "get_inputs"),
        ("class Model(", "missing.py:1: syntax error"),
    ],
)
def test_a_bad_task_file_is_one_line(run: Run, tmp_path: Path, text: str | None, told: str) -> None:
    path = tmp_path / "missing.py"
    if text is not None:
        path.write_text(text)
    result = run("optimize", path, "--device", "cpu")
    assert result.exit_code == 2 and told in result.stderr
    assert len(result.stderr.splitlines()) == 1
