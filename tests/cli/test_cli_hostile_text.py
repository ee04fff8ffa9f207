"""What candidates, tasks and archives hold is shown, and never speaks to the terminal."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_fakes import FAST, REFERENCE
from rich.text import Text
from typer.testing import Result

from cuda_l1.cli import output
from cuda_l1.cli.output import Output, Screen, printable
from cuda_l1.report.terminal import table

Run = Callable[..., Result]
SPEAKS = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e\rover"
"""A title, a cleared screen, a colour by one sign, text that is turned around, a line that is written over."""


def is_quiet(text: str) -> bool:
    return printable(text) == text


@pytest.fixture
def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda: True)


def test_what_is_printable_stays(on_a_terminal: None, capsys: pytest.CaptureFixture[str]) -> None:
    text = "größer 你好 [bold]\tx\n── ✓"
    assert printable(text) == text
    Output.text(SPEAKS + text)
    Output.say(SPEAKS)
    Output.error(SPEAKS)
    told = capsys.readouterr()
    assert is_quiet(told.out) and is_quiet(told.err) and told.out.endswith(text)


def test_a_pipe_gets_the_text_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    Output.text(SPEAKS)
    assert capsys.readouterr().out == SPEAKS


def test_tables_and_sentences_are_drawn_in_colour_and_their_words_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    file = io.StringIO()
    screen = Screen(file, 80)
    screen.print(table((f"a{SPEAKS}",), [(f"b{SPEAKS}",)], title=SPEAKS), Text(SPEAKS), SPEAKS)
    assert is_quiet(file.getvalue()) and "title" in file.getvalue()
    Output(as_json=False).show(table(("a",), [(SPEAKS,)]), Text(SPEAKS))
    assert is_quiet(capsys.readouterr().out)


def test_every_command_that_shows_a_text(run: Run, tmp_path: Path, on_a_terminal: None) -> None:
    reference, candidate = tmp_path / f"ref{SPEAKS.replace('/', '')}.py", tmp_path / "fast.py"
    reference.write_text(f"# {SPEAKS}\n{REFERENCE}")
    candidate.write_text(f"# {SPEAKS}\n# speedup 2.0\n{FAST}")
    judged = run("evaluate", reference, candidate, "--device", "cpu", "--json")
    record = json.loads(judged.stdout.splitlines()[0])["record"]
    run("archive", "hacks", "add", candidate, "--why", SPEAKS, "--name", SPEAKS)
    for words in (
        ("evaluate", reference, candidate, "--device", "cpu"),
        ("tasks", "show", reference),
        ("prompt", reference, "--device", "cpu"),
        ("archive", "list"),
        ("archive", "best"),
        ("archive", "show", record),
        ("archive", "show", record, "--source"),
        ("archive", "hacks", "list"),
        ("archive", "hacks", "show", SPEAKS),
        ("archive", "export", "no such"),
        *(("report", "--format", name) for name in ("terminal", "markdown", "csv", "json")),
    ):
        result = run(*words)
        assert result.stdout or result.stderr, words
        assert is_quiet(result.stdout) and is_quiet(result.stderr), (words, result.stdout, result.stderr)
