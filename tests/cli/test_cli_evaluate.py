"""`cuda-l1 evaluate`: exit codes, JSON and what it says to people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cli_fakes import FAST, FakeEvaluator, lines
from typer.testing import Result

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
