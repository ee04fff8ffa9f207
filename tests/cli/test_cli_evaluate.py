"""`cuda-l1 evaluate`: exit codes, JSON and what it says to people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import FAST, PLACE, FakeEvaluator, lines
from typer.testing import Result

from cuda_l1.proposers.baselines import baselines
from cuda_l1.tasks import load_task
from cuda_l1.types import Candidate, Evaluation, Outcome, Task

Run = Callable[..., Result]


@pytest.fixture
def candidate(tmp_path: Path) -> Callable[[str], Path]:
    def write(head: str, name: str = "candidate.py") -> Path:
        path = tmp_path / name
        path.write_text(head + FAST)
        return path

    return write


def test_json_has_a_line_per_candidate_and_a_summary_last(
    run: Run, reference: Path, candidate: Callable[..., Path]
) -> None:
    good, bad = candidate("# speedup 2.0\n"), candidate("# outcome WRONG_VALUES\n", "bad.py")
    result = run("evaluate", reference, good, bad, "--json", "--device", "cpu")
    assert result.exit_code == 0
    first, second, summary = lines(result)
    assert (first["kind"], first["outcome"], first["precision_class"]) == ("evaluation", "ACCEPTED", "fp32")
    assert first["speedup_eager"] == 2.0 and first["speedup_eager_low"] == 1.96
    assert first["speedup_best_baseline"] is None
    assert second["outcome"] == "WRONG_VALUES" and second["detail"] == "it says so"
    assert (summary["kind"], summary["accepted"], summary["speedup_eager"]) == ("summary", 1, 2.0)


def test_none_accepted_is_exit_code_1(run: Run, reference: Path, candidate: Callable[..., Path]) -> None:
    result = run("evaluate", reference, candidate("# outcome CRASHED\n"), "--device", "cpu")
    assert result.exit_code == 1
    assert "CRASHED" in result.stdout and "it says so" in result.stdout


def test_a_less_exact_class_is_no_success_unless_asked_for(
    run: Run, reference: Path, candidate: Callable[..., Path]
) -> None:
    path = candidate("# class relaxed\n")
    strict = run("evaluate", reference, path, "--device", "cpu")
    assert strict.exit_code == 1 and "less exact than asked for" in strict.stdout
    assert run("evaluate", reference, path, "--device", "cpu", "--precision", "relaxed").exit_code == 0


def test_a_suspect_is_no_success(run: Run, reference: Path, candidate: Callable[..., Path]) -> None:
    result = run("evaluate", reference, candidate("# suspect clock-mismatch\n"), "--device", "cpu")
    assert result.exit_code == 1 and "clock-mismatch" in result.stdout
    assert "ACCEPTED, does not count 1.00x (suspect for clock-mismatch" in result.stderr
    assert "ACCEPTED, does not count" in result.stdout


@pytest.mark.parametrize("text", ["[/red]", "[bold]", ":smile:"])
def test_brackets_in_what_a_candidate_says_are_printed_as_they_are(
    run: Run, reference: Path, candidate: Callable[..., Path], text: str
) -> None:
    result = run("evaluate", reference, candidate(f"# suspect {text}\n"), "--device", "cpu")
    assert result.exit_code == 1 and text in result.stdout


def test_screen_has_no_interval(run: Run, reference: Path, candidate: Callable[..., Path]) -> None:
    path = candidate("# speedup 3.0\n")
    summary = lines(run("evaluate", reference, path, "--protocol", "screen", "--json", "--device", "cpu"))[-1]
    assert summary["speedup_eager"] == 3.0
    assert summary["speedup_eager_low"] is None and summary["speedup_eager_high"] is None


def test_baselines_give_a_best_baseline(run: Run, reference: Path, candidate: Callable[..., Path]) -> None:
    path = candidate("# speedup 2.0\n")
    summary = lines(run("evaluate", reference, path, "--baselines", "--json", "--device", "cpu"))[-1]
    # The stand-in gives every baseline 1.0x, and so eager is the best of them.
    assert summary["best_baseline"] == "eager"
    assert summary["speedup_best_baseline"] == summary["speedup_eager"] == 2.0
    later = lines(run("evaluate", reference, path, "--json", "--device", "cpu"))[-1]
    assert later["speedup_best_baseline"] == 2.0, "known baselines count without --baselines"


def test_the_best_of_some_baselines_is_not_called_the_best(
    run: Run, reference: Path, candidate: Callable[..., Path], tmp_path: Path
) -> None:
    task = load_task(str(reference))
    eager, *others = baselines(task, "cpu")
    (tmp_path / "eager.py").write_text(eager.source)
    assert run("evaluate", reference, "eager.py", "--protocol", "screen", "--device", "cpu").exit_code == 0
    path = candidate("# speedup 2.0\n")
    summary = lines(run("evaluate", reference, path, "--json", "--device", "cpu"))[-1]
    assert summary["best_baseline"] is None and summary["speedup_best_baseline"] is None
    assert summary["baselines_missing"] == [other.label for other in others]
    told = run("evaluate", reference, path, "--device", "cpu").stdout
    assert "best baseline: not known, no record of compile" in told and "--baselines measures them" in told


def test_people_read_which_baseline_it_was_and_which_failed(
    run: Run, reference: Path, candidate: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = FakeEvaluator.evaluate

    def without_a_compiler(self: FakeEvaluator, task: Task, made: Candidate, **rest: Any) -> Evaluation:
        found = original(self, task, made, **rest)
        if made.label != "compile":
            return found
        changed = {"outcome": Outcome.BUILD_FAILED, "correctness": None, "timings": ()}
        return found.model_copy(update=changed)

    monkeypatch.setattr(FakeEvaluator, "evaluate", without_a_compiler)
    told = run("evaluate", reference, candidate("# speedup 2.0\n"), "--baselines", "--device", "cpu").stdout
    (line,) = [line for line in told.splitlines() if line.startswith("best baseline:")]
    assert line.startswith("best baseline: eager, the best of eager") and "left out: compile (BUILD_FAILED)" in line


def test_the_best_baseline_is_that_of_the_clock(
    run: Run, reference: Path, candidate: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = FakeEvaluator.evaluate

    def two_clocks(self: FakeEvaluator, task: Task, made: Candidate, **rest: Any) -> Evaluation:
        """By call time compile is twice as fast as eager, by device time half as fast."""
        found = original(self, task, made, **rest)
        factor = 2.0 if made.label == "compile" else 1.0
        timings = [
            figure.model_copy(update={"clock": clock, "speedup": figure.speedup * factor**sign})
            for figure in found.timings
            for clock, sign in (("call", 1), ("device", -1))
        ]
        return found.model_copy(update={"timings": tuple(timings)})

    monkeypatch.setattr(FakeEvaluator, "evaluate", two_clocks)
    monkeypatch.setattr(FakeEvaluator, "environment", PLACE.model_copy(update={"device": "cuda", "lane": "gpu"}))
    monkeypatch.setattr("cuda_l1.api.places.resolve_device", lambda text: "cuda")
    path = candidate("# speedup 2.0\n")
    by_device = lines(run("evaluate", reference, path, "--baselines", "--json"))[-1]
    by_call = lines(run("evaluate", reference, path, "--baselines", "--clock", "call", "--json"))[-1]
    assert (by_device["best_baseline"], by_call["best_baseline"]) == ("eager", "compile")


def test_a_verdict_without_a_wall_is_shown_and_is_no_success(
    run: Run, reference: Path, candidate: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeEvaluator, "environment", PLACE.model_copy(update={"rung": "R0"}))
    result = run("evaluate", reference, candidate("# speedup 2.0\n"), "--device", "cpu")
    assert result.exit_code == 1 and "sandbox rung R0: never wins" in result.stdout
    assert result.stderr.count("the sandbox rung is R0") == 1
    exported = run("archive", "export", "ref", "--out", "fast.py")
    assert exported.exit_code == 1 and not Path("fast.py").exists()
    (line,) = exported.stderr.splitlines()
    assert "the sandbox rung is R0" in line and "`cuda-l1 doctor` says how to raise it" in line


def test_a_known_verdict_is_not_paid_for_again(
    run: Run, reference: Path, candidate: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    paid: list[str] = []
    original = FakeEvaluator.evaluate

    def counting(self: FakeEvaluator, task: object, made: object, **rest: object) -> object:
        paid.append("one")
        return original(self, task, made, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(FakeEvaluator, "evaluate", counting)
    path = candidate("# speedup 2.0\n")
    for expected, flags in ((1, []), (1, []), (2, ["--fresh"])):
        assert run("evaluate", reference, path, "--device", "cpu", *flags).exit_code == 0
        assert len(paid) == expected


def test_ctrl_c_says_what_is_kept(run: Run, reference: Path, candidate: Callable[..., Path]) -> None:
    result = run("evaluate", reference, candidate("# raise KeyboardInterrupt\n"), "--device", "cpu")
    assert result.exit_code == 130
    assert "interrupted" in result.stderr and "kept in the archive" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_bare_command_says_what_is_missing(run):
    result = run("evaluate")
    assert result.exit_code == 2 and "Missing argument" in result.stderr
    assert run("replay", "r.jsonl", "--at-once", 10**23).exit_code == 2
    assert run("bench", "builtin", "--max-gib", "inf").exit_code == 2
