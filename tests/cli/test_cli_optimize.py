"""`cuda-l1 optimize`: the file, the figures, exit codes, and that an interrupted run goes on."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from cli_fakes import FAST, lines
from typer.testing import Result

import cuda_l1.api.proposers as registry
from cuda_l1.export.header import body_sha256, split_header
from cuda_l1.types import Candidate, Origin, Record, Task

Run = Callable[..., Result]


class Listed:
    """Proposes texts in order."""

    name = "listed"

    def __init__(self, heads: Sequence[str]) -> None:
        self.heads = heads

    def propose(self, task: Task, history: Sequence[Record]) -> Candidate | None:
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
    return lambda *heads: monkeypatch.setitem(registry.PROPOSERS, "techniques", lambda *_: Listed(heads))


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
    assert body_sha256(text) in header
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


def test_nothing_faster_is_exit_code_1_and_no_file(run: Run, reference: Path, propose: Callable[..., None]) -> None:
    propose("# speedup 0.5", "# outcome CRASHED", "# speedup 9.0\n# suspect clock-mismatch")
    result = run("optimize", reference, "--device", "cpu", "--json")
    assert result.exit_code == 1
    summary = lines(result)[-1]
    assert summary["result"] == "no-improvement" and summary["path"] is None
    assert summary["speedup_eager"] is None
    assert not Path("ref_optimized.py").exists()


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
        (["--budget", "soon"], 2, "give a time"),
        (["--budget", "2.5"], 2, "write a unit"),
        (["--clock", "device"], 2, "no device clock"),
        (["--clock", "sundial"], 2, "sundial"),
        (["--proposer", "oracle"], 2, "known are techniques"),
        (["--proposer", "techniques:alchemy"], 2, "unknown technique `alchemy`"),
        (["--device", "tpu"], 2, "expected auto, cpu, cuda"),
        (["--device", "cuda"], 3, "no NVIDIA GPU"),
        (["--device", "cuda:7"], 3, "no NVIDIA GPU"),
        (["--out", "nowhere/fast.py"], 2, "no folder nowhere"),
        (["--out", "."], 2, "is a folder"),
        (["--precision", "fp7"], 2, "fp7"),
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
