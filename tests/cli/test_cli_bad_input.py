"""Files that are no candidates, or odd ones: one clear line and the right exit code, or the outcome that is due."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import FAST, REFERENCE, FakeEvaluator, lines
from typer.testing import Result

import cuda_l1
from cuda_l1.api.batch import normalised
from cuda_l1.api.judging import MAX_SOURCE_BYTES, read_source
from cuda_l1.errors import CandidateError, UsageError

Run = Callable[..., Result]


def only_line(result: Result) -> str:
    """What a refused command says: one line on stderr, nothing on stdout, exit code 2."""
    assert result.exit_code == 2 and not result.stdout, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("cuda-l1: ")
    return line


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"# caf\xe9\n" + FAST.encode(), "bad.py: is not text in UTF-8 (byte 5)"),
        (b"\xff\xfe" + FAST.encode("utf-16-le"), "bad.py: is not text in UTF-8 (byte 0)"),
        (b"# " + b"x" * 10_000_000, "bad.py: is 9.5 MiB; a candidate may have 8 MiB"),
    ],
    ids=["latin-1", "utf-16", "10 MB"],
)
def test_what_is_no_text_of_a_candidate(
    run: Run, reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, told: str
) -> None:
    monkeypatch.setattr(FakeEvaluator, "evaluate", None)  # nothing is judged, the good one beside it neither
    (tmp_path / "bad.py").write_bytes(content)
    (tmp_path / "good.py").write_text(FAST)
    assert told in only_line(run("evaluate", reference, "good.py", "bad.py", "--device", "cpu"))


@pytest.mark.parametrize("command", ["optimize", "bench", "collect", "prompt"])
def test_a_seed_below_zero(run: Run, command: str) -> None:
    result = run(command, "linear_sum", "--seed", "-1")
    assert result.exit_code == 2 and not result.stdout
    assert result.stderr.splitlines()[-1] == "Error: Invalid value for '--seed': must be at least 0"


@pytest.mark.parametrize("text", ["-5s", "0s", "20", "nan", "9e9h", "99999999h"])
def test_a_final_budget_that_is_no_time(run: Run, reference: Path, text: str) -> None:
    told = only_line(run("evaluate", reference, reference, "--device", "cpu", "--final-budget", text))
    assert told == f"cuda-l1: --final-budget {text}: give a time up to a year, e.g. 60s"


def test_names_that_lead_nowhere(run: Run, reference: Path, tmp_path: Path) -> None:
    (tmp_path / "dangling.py").symlink_to(tmp_path / "nothing.py")
    (tmp_path / "loop.py").symlink_to(tmp_path / "loop.py")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "zero.py").symlink_to("/dev/zero")
    for name, told in (
        ("dangling.py", "No such file"),
        ("loop.py", "Too many levels of symbolic links"),
        ("folder.py", "Is a directory"),
        ("zero.py", "has no end"),
        ("x" * 300 + ".py", "File name too long"),
    ):
        line = only_line(run("evaluate", reference, name, "--device", "cpu"))
        assert told in line and name in line


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("archive", "list", "--limit", "9" * 30), "'--limit': must be at most 1099511627776"),
        (("archive", "list", "--limit", "many"), "'--limit': must be a whole number"),
        (("archive", "list", "--limit", "0"), "'--limit': must be at least 1"),
        (("report", "--format", "x"), "'--format': 'x' is not one of 'terminal', 'markdown', 'csv', 'json'"),
    ],
)
def test_a_value_that_an_option_cannot_have_is_told_in_plain_words(run: Run, words: tuple[str, ...], told: str) -> None:
    result = run(*words)
    assert result.exit_code == 2 and f"Invalid value for {told}" in result.stderr


@pytest.mark.parametrize("command", [("optimize",), ("train", "sft"), ("replay",)])
def test_what_never_ends_is_not_read_for_ever(
    run: Run, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuda_l1.tasks.release.MOST_CHARACTERS", 1000)
    assert "/dev/zero: cannot be read: File too large" in only_line(run(*command, "/dev/zero"))


def test_a_link_and_a_name_with_dots_are_the_files_that_they_lead_to(run: Run, reference: Path, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "good.py").write_text("# speedup 2.0\n" + FAST)
    (tmp_path / "link.py").symlink_to("good.py")
    (tmp_path / "a..b [x].py").symlink_to("good.py")
    words = ("link.py", "sub/../good.py", "a..b [x].py")
    found = lines(run("evaluate", reference, *words, "--device", "cpu", "--json"))
    assert [line["path"] for line in found[:-1]] == list(words)
    assert {line["outcome"] for line in found[:-1]} == {"ACCEPTED"}
    assert "a..b [x].py" in run("evaluate", reference, *words, "--device", "cpu").stdout


def test_newlines_and_a_mark_at_the_beginning_are_read_as_python_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "dos.py"
    path.write_bytes(b"\xef\xbb\xbfa = 1\r\nb = 2\rc = 3\n")
    assert read_source(path) == "a = 1\nb = 2\nc = 3\n"


def test_texts_are_the_same_only_where_their_meaning_is() -> None:
    assert normalised("a = 1 \nb = 2\n\n") == normalised("a = 1\nb = 2")
    for one, other in (
        ("a = 1 + \\\n    2", "a = 1 + \\ \n    2"),
        ("a = 'x\u2028y'", "a = 'x\ny'"),
        ('a = """x \n"""', 'a = """x\n"""'),
        ("a = 1  # one", "a = 1  # two"),
    ):
        assert normalised(one) != normalised(other)


def test_texts_from_python(tmp_path: Path) -> None:
    (tmp_path / "ref.py").write_text(REFERENCE)
    for text, told in (("# \ud800\n", "half a character"), ("#" * MAX_SOURCE_BYTES + "\n", "may have 8 MiB")):
        with pytest.raises(CandidateError, match=told) as caught:
            cuda_l1.verify_shapes(tmp_path / "ref.py", text, "4=1", device="cpu")
        assert isinstance(caught.value, UsageError) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"precision": "fp8"}, "precision `fp8`: choose one of default, fp32, tf32, relaxed"),
        ({"clock": "throughput"}, "clock `throughput`: choose one of device, call"),
        ({"final_budget": "20"}, "give a time"),
        ({"budget": "soon"}, "give a time"),
        ({"proposers": "techniques:fusion, nobody"}, "nobody"),
    ],
)
def test_wrong_words_of_optimize_from_python(tmp_path: Path, wrong: dict[str, Any], told: str) -> None:
    import torch

    archive = tmp_path / "data" / "a.sqlite"
    with pytest.raises(UsageError, match=told) as caught:
        cuda_l1.optimize(torch.nn.Linear(2, 2), torch.randn(2, 2), **{"device": "cpu", "archive": archive, **wrong})
    assert "\n" not in str(caught.value) and not archive.exists()


@pytest.mark.parametrize(
    ("wrong", "told"), [({"protocol": "scren"}, "choose one of final, screen"), ({"precision": "fp8"}, "default, fp32")]
)
def test_wrong_words_of_evaluate_from_python(tmp_path: Path, wrong: dict[str, Any], told: str) -> None:
    (tmp_path / "ref.py").write_text(REFERENCE)
    with pytest.raises(UsageError, match=told):
        cuda_l1.evaluate(tmp_path / "ref.py", FAST, device="cpu", archive=tmp_path / "a.sqlite", **wrong)


@pytest.mark.e2e
@pytest.mark.timeout(300)
def test_odd_texts_are_outcomes(tmp_path: Path) -> None:
    texts = {
        "null.py": ("x = 1\0\n" + FAST, "null bytes"),
        "empty.py": ("", "defines no `ModelNew`"),
        "nested.py": ("x = " + "(" * 5000 + ")" * 5000 + "\n", "SyntaxError|MemoryError|RecursionError"),
        "long.py": ("x = 1\n" * 100_000, "defines no `ModelNew`"),
        "large.py": ("# " + "x" * 7_000_000 + "\n", "defines no `ModelNew`"),
    }
    (tmp_path / "ref.py").write_text(REFERENCE)
    for name, (text, _) in texts.items():
        (tmp_path / name).write_text(text)
    words = [sys.executable, "-m", "cuda_l1.cli", "evaluate", "ref.py", *texts, "--protocol", "screen", "--json"]
    place = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [*words, "--archive", "a.sqlite"], cwd=tmp_path, env=place, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    for line, (_, told) in zip(map(json.loads, done.stdout.splitlines()), texts.values(), strict=False):
        assert line["outcome"] == "BUILD_FAILED" and any(word in line["detail"] for word in told.split("|")), line
