"""`--reviewer` with a real HTTP server behind it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import FAST, FakeEvaluator, lines
from test_cli_optimize import Listed
from typer.testing import Result

import cuda_l1
import cuda_l1.api.proposers as registry
from cuda_l1.config import ReviewerSettings
from cuda_l1.types import Candidate, Evaluation, Task
from llm_server import NEVER, Reply, serving
from opinions import opinion

Run = Callable[..., Result]

CASE = "mechanism = 'says that it is fast'\n"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def fast(tmp_path: Path) -> Path:
    path = tmp_path / "fast.py"
    path.write_text("# speedup 60.0\n" + FAST)
    return path


def evaluate(run: Run, reference: Path, *words: object) -> Result:
    return run("evaluate", reference, *words, "--device", "cpu")


def test_a_suspicion_ends_in_exit_code_1_and_in_the_record(run: Run, reference: Path, fast: Path) -> None:
    case = fast.parent / "cases" / "boast"
    case.mkdir(parents=True)
    (case / "case.toml").write_text(CASE)
    (case / "candidate.py").write_text("# speedup 99\n" + FAST)
    run("archive", "hacks", "import", case.parent)
    with serving(opinion("suspect", "it says so itself", (1,))) as server:
        result = evaluate(run, reference, fast, "--reviewer", server.url, "--json")
        (question,) = server.questions()
    assert result.exit_code == 1
    judged, summary = lines(result)
    assert (judged["outcome"], summary["accepted"], summary["reviewer"]) == ("ACCEPTED", 0, server.url)
    (finding,) = judged["findings"]
    assert (finding["check"], finding["severity"]) == ("review", "suspect")
    assert "test-model at 127.0.0.1" in finding["evidence"] and "cases shown: boast" in finding["evidence"]
    assert "says that it is fast" in question and "# speedup 60.0" in question and "class Model(" in question
    assert f"asking the reviewer about {fast}" in result.stderr
    assert f"second opinion on {fast}: test-model" in result.stderr
    assert "suspect: review" in evaluate(run, reference, fast).stdout, "it is remembered"
    assert run("archive", "best").exit_code == 1


def test_the_reviewer_gets_the_key_that_is_its_own(
    run: Run, reference: Path, fast: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def sent(*words: str) -> str:
        with serving(opinion("no_objection")) as server:
            for url in (word for word in words if word == "OPENAI_BASE_URL"):
                monkeypatch.setenv(url, server.url)
            options = [word for word in words if word != "OPENAI_BASE_URL"]
            assert evaluate(run, reference, fast, "--fresh", "--reviewer", server.url, *options).exit_code == 0
            return server.headers[0]["authorization"].removeprefix("Bearer ")

    monkeypatch.setenv("OPENAI_API_KEY", "sk-for-another-place")
    (tmp_path / "key").write_text("sk-the-reviewers\n")
    assert sent() == "none"
    assert sent("--reviewer-key-file", str(tmp_path / "key")) == "sk-the-reviewers"
    assert sent("OPENAI_BASE_URL") == "sk-for-another-place"
    with serving(opinion("no_objection"), keys=("sk-the-reviewers",)) as server:
        asked = evaluate(run, reference, fast, "--fresh", "--reviewer", server.url)
    assert asked.exit_code == 0 and "wants a key, and none was sent" in asked.stderr
    assert "--reviewer-key-file FILE gives it one" in asked.stderr
    absent = evaluate(run, reference, fast, "--reviewer", "http://a/v1", "--reviewer-key-file", "absent")
    assert absent.exit_code == 2 and "key file absent: cannot be read" in absent.stderr
    alone = evaluate(run, reference, fast, "--reviewer-key-file", str(tmp_path / "key"))
    assert alone.exit_code == 2 and "--reviewer-key-file" in alone.stderr and "say where it is served" in alone.stderr


def test_no_objection_is_told_beside_the_figures(run: Run, reference: Path, fast: Path) -> None:
    with serving(opinion("no_objection", "an honest [/b] kernel")) as server:
        result = evaluate(run, reference, fast, "--reviewer", server.url, "--reviewer-model", "named")
        assert server.requests[0]["model"] == "named"
    assert result.exit_code == 0
    assert "note: review (named at" in result.stdout and "an honest [/b] kernel" in result.stdout


@pytest.mark.parametrize("reply", [(401, "no"), (429, "no"), (500, "no"), b"garbage", "no JSON"])
def test_a_failing_reviewer_changes_nothing_but_a_line(run: Run, reference: Path, fast: Path, reply: Reply) -> None:
    with serving(reply) as server:
        result = evaluate(run, reference, fast, "--reviewer", server.url, "--json")
    assert result.exit_code == 0
    judged, summary = lines(result)
    assert [(f["check"], f["severity"]) for f in judged["findings"]] == [("no-opinion", "note")]
    assert (summary["accepted"], judged["speedup_eager"]) == (1, 60.0)
    told = [line for line in result.stderr.splitlines() if "second opinion" in line]
    assert len(told) == 1 and "has no opinion: " in told[0]


def test_a_verdict_that_is_known_gets_an_opinion_when_one_is_asked_for(run: Run, reference: Path, fast: Path) -> None:
    first = evaluate(run, reference, fast)
    assert first.exit_code == 0
    assert (
        f"no second opinion on {fast}, though 60.00x against eager" in first.stderr and "--reviewer URL" in first.stderr
    )
    with serving(opinion("suspect")) as server:
        assert evaluate(run, reference, fast, "--reviewer", server.url).exit_code == 1
        assert evaluate(run, reference, fast, "--reviewer", server.url).exit_code == 1
        assert len(server.requests) == 1


def test_what_is_no_jump_is_not_sent_anywhere(run: Run, reference: Path, fast: Path) -> None:
    fast.write_text("# speedup 1.5\n" + FAST)
    with serving(opinion("suspect")) as server:
        assert evaluate(run, reference, fast, "--reviewer", server.url).exit_code == 0
        assert server.requests == []


def test_two_that_cheat_do_not_vouch_for_each_other(run: Run, reference: Path, fast: Path) -> None:
    other = fast.with_name("other.py")
    other.write_text("# speedup 70.0\n" + FAST)
    assert evaluate(run, reference, fast, other).exit_code == 0
    with serving(opinion("suspect")) as server:
        result = evaluate(run, reference, fast, other, "--reviewer", server.url)
        assert len(server.requests) == 2
    assert result.exit_code == 1
    assert f"second opinion on {fast}" in result.stderr and f"second opinion on {other}" in result.stderr


def test_a_jump_is_one_over_the_best_baseline(run: Run, reference: Path, fast: Path, monkeypatch: Any) -> None:
    evaluate_as_ever = FakeEvaluator.evaluate

    def with_a_good_baseline(self: FakeEvaluator, task: Task, made: Candidate, **rest: Any) -> Evaluation:
        if made.label == "compile":
            made = made.model_copy(update={"source": made.source + "\n# speedup 1.25\n"})
        return evaluate_as_ever(self, task, made, **rest)

    monkeypatch.setattr(FakeEvaluator, "evaluate", with_a_good_baseline)
    fast.write_text("# speedup 2.4\n" + FAST)
    other = fast.with_name("other.py")
    other.write_text("# speedup 2.6\n" + FAST)
    with serving(opinion("no_objection")) as server:
        assert evaluate(run, reference, fast, other, "--baselines", "--reviewer", server.url).exit_code == 0
        assert ["# speedup 2.6" in question for question in server.questions()] == [True]


def test_from_python(run: Run, reference: Path, fast: Path) -> None:
    with serving(opinion("suspect", "it says so")) as server:
        reviewer = ReviewerSettings(url=server.url)
        evaluation = cuda_l1.evaluate(reference, fast, device="cpu", reviewer=reviewer)
    assert [(f.check, f.severity) for f in evaluation.findings] == [("review", "suspect")]
    assert cuda_l1.evaluate(reference, fast, device="cpu") == evaluation


def test_a_search_goes_on_with_the_next_best(run: Run, reference: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def suspicious(request: object) -> str:
        cheats = "# speedup 60.0" in request["messages"][-1]["content"]  # type: ignore[index]
        return opinion("suspect" if cheats else "no_objection")(request)  # type: ignore[arg-type]

    heads = ("# speedup 60.0", "# speedup 3.0")
    monkeypatch.setitem(registry.PROPOSERS, "techniques", lambda *_: Listed(heads))
    with serving(suspicious) as server:
        result = run("optimize", reference, "--device", "cpu", "--reviewer", server.url)
        as_json = run("optimize", reference, "--device", "cpu", "--reviewer", server.url, "--json")
        assert len(server.requests) == 2, "the second command knows both opinions"
    assert result.exit_code == 0, result.stderr
    assert "second opinion on mark: test-model at" in result.stderr and "suspects: because" in result.stderr
    assert "3.00x" in result.stdout and "has no objection: because" in result.stdout
    assert lines(as_json)[-1]["reviewer"] == server.url
    assert lines(as_json)[-1]["speedup_eager"] == 3.0


def test_a_silent_server_does_not_hold_up_a_search(run: Run, reference: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import cuda_l1.search.stopping as stopping

    monkeypatch.setattr(stopping, "LEAST_REVIEW_S", 0.2)
    monkeypatch.setitem(registry.PROPOSERS, "techniques", lambda *_: Listed(("# speedup 60.0", "# speedup 200.0")))
    with serving(NEVER) as server:
        result = run("optimize", reference, "--device", "cpu", "--budget", "5s", "--reviewer", server.url)
        assert len(server.requests) == 1, "who did not answer is not asked again"
    assert result.exit_code == 0
    assert result.stderr.count("has no opinion: no answer within") == 3, "two screens and the winner's final"
    assert "200.00x" in result.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--reviewer", "localhost:8000"], "is not the address of an endpoint"),
        (["--reviewer", "http://"], "is not the address of an endpoint"),
        (["--reviewer", "http://host:port/v1"], "is not the address of an endpoint"),
        (["--reviewer", "ftp://host/v1"], "is not the address of an endpoint"),
        (["--reviewer", "http://user:secret@host/v1"], "leave keys out of the address"),
        (["--reviewer", "http://host/v1?key=secret"], "leave keys out of the address"),
        (["--reviewer-model", "m"], "say where it is served"),
    ],
)
def test_mistakes_are_said_before_anything_starts(
    run: Run, reference: Path, fast: Path, words: list[str], says: str
) -> None:
    for result in (evaluate(run, reference, fast, *words), run("optimize", reference, "--device", "cpu", *words)):
        assert result.exit_code == 2 and says in result.stderr and "secret" not in result.stderr
        assert result.stderr.count("\n") == 1
