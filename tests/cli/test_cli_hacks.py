"""`archive hacks`: confirmed attacks kept for a reviewer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cli_fakes import FAST, lines
from typer.testing import Result

Run = Callable[..., Result]

ATTACK = "class ModelNew(Model):\n    def forward(self, x):\n        return x[:1]  # [/red] a part only\n"
CORPUS = Path(__file__).parents[1] / "attacks" / "cases"


@pytest.fixture
def attack(tmp_path: Path) -> Path:
    path = tmp_path / "attack.py"
    path.write_text(ATTACK)
    return path


def test_a_file_is_stored_listed_shown_and_removed(run: Run, attack: Path, reference: Path) -> None:
    words = ["archive", "hacks", "add", attack, "--why", "computes\n one  row [bold]", "--reference", reference]
    assert "1 stored" in run(*words).stdout
    assert lines(run(*words, "--json"))[-1] == {"kind": "summary", "stored": 0, "known": 1}
    case, summary = lines(run("archive", "hacks", "list", "--json"))
    assert (case["name"], case["why"], case["source"]) == ("attack", "computes one row [bold]", ATTACK)
    assert "class Model" in case["reference"] and summary["cases"] == 1
    assert "one row [bold]" in run("archive", "hacks", "list").stdout
    for wanted in ("attack", case["id"][:6]):
        shown = run("archive", "hacks", "show", wanted).stdout
        assert case["id"] in shown and "one row" in shown and ATTACK.rstrip() in shown
    assert run("archive", "hacks", "show", "attack", "--source").stdout.strip() == ATTACK.strip()
    assert "removed" in run("archive", "hacks", "remove", "attack").stdout
    assert lines(run("archive", "hacks", "list", "--json")) == [{"kind": "summary", "cases": 0}]


def test_a_judged_candidate_is_stored_by_its_id(run: Run, attack: Path, reference: Path) -> None:
    attack.write_text(FAST)
    judged = lines(run("evaluate", reference, attack, "--device", "cpu", "--json"))[0]
    for wanted in (judged["record"][:10], judged["candidate_id"][:10]):
        run("archive", "hacks", "add", wanted, "--why", "hides work")
    case, _ = lines(run("archive", "hacks", "list", "--json"))
    assert case["source"] == FAST and case["name"].startswith("file/ref/")
    assert case["reference"].strip() == reference.read_text().strip()


def test_what_the_evaluator_rejects_is_stored_with_its_evidence(run: Run, attack: Path, reference: Path) -> None:
    attack.write_text("# outcome REJECTED\n" + FAST)
    run("evaluate", reference, attack, "--device", "cpu")
    case, _ = lines(run("archive", "hacks", "list", "--json"))
    assert case["source"].startswith("# outcome REJECTED") and case["why"] == "it says so"


def test_the_corpus_of_this_repository_is_imported(run: Run) -> None:
    *cases, summary = lines(run("archive", "hacks", "import", CORPUS, "--json"))
    assert summary["stored"] == len(cases) == len(list(CORPUS.glob("*/*/case.toml")))
    assert all(case["why"] and case["source"] and case["reference"] for case in cases)
    assert "clock/lazy-tuple" in run("archive", "hacks", "list").stdout
    assert "0 stored" in run("archive", "hacks", "import", CORPUS).stdout


def test_what_is_refused_leaves_nothing_behind(run: Run, attack: Path, tmp_path: Path) -> None:
    for words in (("add", "3f2a91", "--why", "x"), ("add", attack, "--why", " "), ("import", tmp_path / "none")):
        assert run("archive", "hacks", *words).exit_code == 2
        assert not (tmp_path / "data").exists()


def test_mistakes_are_one_line(run: Run, tmp_path: Path, attack: Path) -> None:
    run("archive", "hacks", "add", attack, "--why", "x")
    folder = tmp_path / "cases" / "one"
    folder.mkdir(parents=True)

    def says(*words: object) -> str:
        result = run("archive", "hacks", *words)
        assert result.exit_code == 2 and result.stderr.count("\n") == 1, result.stderr
        return result.stderr

    assert "an explanation is missing" in says("add", attack, "--why", " ")
    assert "no file, record or candidate" in says("add", "missing.py", "--why", "x")
    assert "cannot be read" in says("add", attack, "--why", "x", "--reference", "missing.py")
    assert "no such case" in says("show", "nothing")
    assert "no such case" in says("remove", "nothing")
    assert "is no folder" in says("import", attack)
    assert "no case.toml in it" in says("import", folder)
    description = folder / "case.toml"
    description.write_text("mechanism = ")
    assert "is not TOML" in says("import", folder)
    description.write_text("name = 'x'\n")
    assert "has no line `mechanism" in says("import", folder)
    description.write_text("mechanism = 'x'\n")
    assert "candidate.py: cannot be read" in says("import", folder)
    (folder / "candidate.py").write_bytes(b"\xff\xfe")
    assert "is not text in UTF-8" in says("import", folder)
    (folder / "candidate.py").write_text("\n")
    assert "text is empty" in says("import", folder)
