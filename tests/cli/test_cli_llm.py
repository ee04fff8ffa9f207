"""`optimize --proposer llm`: from a scripted reply to the file, the ledger, and every way in which it is refused."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import REFERENCE, FakeEvaluator, lines
from typer.testing import Result

from cuda_l1.archive import Archive
from cuda_l1.types import Candidate, Evaluation, Task
from llm_server import Answer, LlmServer, Request, serving

Run = Callable[..., Result]
KEY = "sk-of-a-test-0123456789"
PRICES = "[m]\ninput = 1000\noutput = 2000\n"


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def reply(head: str) -> str:
    """What a model says whose candidate the fake evaluator judges by its head."""
    code = f"{REFERENCE}\n{head}\nclass ModelNew(Model):\n    pass\n"
    return (
        "## Performance Analysis\nIt is slow.\n\n## Algorithm Design\nFuse it all.\n\n"
        f"## Code Implementation\n```python\n{code}```\n"
    )


def series(*heads: str) -> Callable[[Request], str]:
    """These candidates, then others without a gain, no two alike."""
    numbers = itertools.count()

    def answer(request: Request) -> str:
        number = next(numbers)
        return reply(heads[number] if number < len(heads) else f"# speedup 0.5 {number}")

    return answer


@pytest.fixture
def ask(run: Run, reference: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs `optimize` with a model at a server that the environment names beside the key."""

    def asked(server: LlmServer | str, *words: str, model: str = "m,concurrency=1") -> Result:
        url = server if isinstance(server, str) else server.url
        proposer = () if "--proposer" in words else ("--proposer", "llm")
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        return run("optimize", reference, "--device", "cpu", *proposer, "--model", model, "--json", *words)

    return asked


Ask = Callable[..., Result]


def test_a_scripted_reply_wins(ask: Ask, reference: Path) -> None:
    with serving("no code here", series("# speedup 2.0", "# speedup 3.0", "# outcome CRASHED")) as server:
        result = ask(server, "--budget", "6")
    assert result.exit_code == 0, result.stderr
    *records, summary = lines(result)
    assert summary["result"] == "beats-best-baseline" and summary["technique"] == "m"
    assert "# speedup 3.0" in Path(summary["path"]).read_text()
    (use,) = summary["models"]
    assert (use["model"], use["gains"], use["best_speedup"]) == ("m", 2, pytest.approx(3.0))
    assert use["replies"] == len(server.asked) and use["problems"] == {"no-code": 1}
    assert use["tokens_in"] > 100 and use["tokens_out"] > 100 and use["usd"] is None
    proposed = [r for r in records if r["candidate"]["origins"][0]["proposer"] == "llm"]
    assert {r["candidate"]["origins"][0]["template"].split("@")[0] for r in proposed} <= {"contrastive", "repair"}
    assert "m replied: no-code (there is no code block)" in result.stderr
    repairs = [q for q in server.questions() if "CRASHED" in q]
    assert len(repairs) >= 1
    assert any("# speedup 2.0" in q for q in server.questions()[3:]), "no exemplar was shown"
    assert KEY not in result.stdout + result.stderr and server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_what_prompt_shows_is_what_the_next_search_asks(ask: Ask, run: Run, reference: Path) -> None:
    with serving(series("# speedup 2.0", "# outcome CRASHED", "# speedup 1.5", "# outcome TIMED_OUT")) as server:
        words = ("--no-repair", "--prompt", "contrastive,profile=yes")
        ask(server, "--budget", "4", *words)
        shown = lines(run("prompt", reference, "--device", "cpu", "--profile", "--json"))[0]
        before = len(server.questions())
        ask(server, "--budget", "1", *words)
    assert server.questions()[before] == shown["user"]
    for part in ("Variant 2, score", "failed (CRASHED)", "failed (TIMED_OUT)", "About the best variant so far"):
        assert part in shown["user"]


def test_a_winner_is_confirmed_though_a_later_attempt_is_too_long_to_be_shown(ask: Ask) -> None:
    long = "# a line of a long attempt\n" * 400
    with serving(series("# speedup 3.0", f"# outcome CRASHED\n{long}", f"# outcome TIMED_OUT\n{long}")) as server:
        result = ask(server, "--no-repair", "--budget", "6", "--prompt", "contrastive,max_tokens=4000")
    assert result.exit_code == 0, result.stderr
    summary = lines(result)[-1]
    assert summary["result"] == "beats-best-baseline" and "# speedup 3.0" in Path(summary["path"]).read_text()
    assert len(server.asked) >= 4 and summary["failures"] == []


def test_a_winner_is_confirmed_though_no_further_question_can_be_written(ask: Ask, tmp_path: Path) -> None:
    template = tmp_path / "mine.j2"
    template.write_text("{{ exemplars[0].nothing.at_all if exemplars else 'faster, please' }}")
    with serving(series("# speedup 3.0")) as server:
        result = ask(server, "--budget", "6", "--prompt", f"contrastive,template={template}")
    assert result.exit_code == 0, result.stderr
    summary = lines(result)[-1]
    assert "# speedup 3.0" in Path(summary["path"]).read_text() and len(server.asked) == 1
    assert [line for line in summary["failures"] if "template mine" in line] == summary["failures"] != []


def test_a_task_too_long_to_ask_about_is_one_line(ask: Ask, reference: Path) -> None:
    reference.write_text(f"{REFERENCE}\n" + "# a line of a long task\n" * 400)
    limit = ("--prompt", "contrastive,max_tokens=3000")
    with serving("nobody asks") as server:
        result = ask(server, *limit)
        assert result.exit_code == 2 and "more than max_tokens = 3000" in result.stderr.splitlines()[-1]
        beside = ask(server, *limit, "--proposer", "techniques:straight_line,llm")
        assert beside.exit_code != 2 and "more than max_tokens = 3000" in str(lines(beside)[-1]["failures"])
        assert server.asked == []


def test_for_people_the_ledger_is_a_table(run: Run, reference: Path, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    with serving(series("# speedup 2.0")) as server:
        result = run(
            *("optimize", reference, "--device", "cpu", "--proposer", "llm", "--model", "m", "--budget", "2"),
            *("--base-url", server.url, "--prices", tmp_path / "prices.toml"),
        )
    assert result.exit_code == 0, result.stderr
    (line,) = [line for line in result.stdout.splitlines() if line.split()[:2] == ["m", "at"]]
    assert "2.00x" in line and "no price" not in line


def test_several_models_and_techniques_search_together(ask: Ask) -> None:
    by_model = [Answer(model=name, text=reply(f"# speedup {figure}")) for name, figure in (("a", 1.5), ("b", 2.5))]
    with serving(*by_model) as server:
        words = ("--model", "b,temperature=0.5", "--proposer", "techniques:straight_line,llm", "--budget", "30s")
        result = ask(server, *words, model="a")
    assert result.exit_code == 0, result.stderr
    summary = lines(result)[-1]
    assert summary["technique"] == "b"
    assert {use["model"] for use in summary["models"]} == {"a", "b"}
    assert {r.get("temperature") for r in server.requests if r["model"] == "b"} == {0.5}


def test_a_resumed_run_pays_nothing_twice(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    judge, judged = FakeEvaluator.evaluate, []

    def evaluate(self: FakeEvaluator, task: Task, candidate: Candidate, **more: Any) -> Evaluation:
        judged.append(candidate.source)
        if "# stops once" in candidate.source and sum("# stops once" in text for text in judged) == 1:
            raise KeyboardInterrupt
        return judge(self, task, candidate, **more)

    monkeypatch.setattr(FakeEvaluator, "evaluate", evaluate)
    with serving(series("# speedup 2.0", "# speedup 3.0\n# stops once", "# speedup 2.5")) as server:
        assert ask(server, "--budget", "3").exit_code == 130
        before = len(server.asked)
        with Archive.open() as archive:
            paid = list(archive.replies.all())
        assert before == len(paid) == 2
        result = ask(server, "--budget", "3")
        with Archive.open() as archive:
            assert [reply.id for reply in archive.replies.all()][:2] == [reply.id for reply in paid]
    assert result.exit_code == 0, result.stderr
    summary = lines(result)[-1]
    assert summary["models"][0]["replies"] == len(server.asked) == 3
    assert summary["screen_speedup"] == pytest.approx(3.0)
    assert sum("# speedup 2.0" in text for text in judged) == 1, "judged again"


def test_a_text_that_was_judged_before_is_told_as_known_and_is_in_the_ledger(ask: Ask, reference: Path) -> None:
    words = ("--budget", "1", "--no-repair", "--prompt", "contrastive,failures=0")
    with serving(reply("# speedup 2.0")) as server:
        first = ask(server, *words)
    assert first.exit_code == 0 and "m replied: a candidate, " in first.stderr
    with serving(reply("# speedup 2.0")) as server:
        again = ask(server, *words, model="other,concurrency=1")
    assert again.exit_code == 0 and "other replied: known: ACCEPTED, 2.00x, " in again.stderr
    assert "a candidate" not in again.stderr
    (use,) = lines(again)[-1]["models"]
    assert (use["model"], use["candidates"], use["accepted"], use["gains"]) == ("other", use["replies"], 1, 1)
    assert use["best_speedup"] == pytest.approx(2.0)


def test_copies_of_a_text_that_waits_for_its_verdict_are_no_candidates(ask: Ask) -> None:
    with serving(Answer(text=reply("# speedup 2.0"), delay_s=0.3, times=99)) as server:
        # with room for a second candidate it listens on after the first one's verdict, whenever the copies come in
        said = ask(server, "--budget", "2", model="m,concurrency=4").stderr
    assert said.count("m replied: a candidate") == 1
    assert "m replied: a copy of an earlier reply" in said or "m replied: known: ACCEPTED" in said


def test_money_is_limited_where_prices_are_known(ask: Ask, tmp_path: Path) -> None:
    folder = tmp_path / "config" / "cuda-l1"
    folder.mkdir(parents=True)
    with serving(series()) as server:
        result = ask(server, "--max-usd", "1e-9")
        assert "--max-usd 1e-09 is off for m: " in result.stderr and "prices.toml has no price" in result.stderr
        (folder / "prices.toml").write_text(PRICES)
        before = len(server.asked)
        result = ask(server, "--max-usd", "1e-9")
        assert result.exit_code == 1 and len(server.asked) == before
        assert "--max-usd 1e-09: 0.0000 are spent" in lines(result)[-1]["failures"][0]
        result = ask(server, "--max-tokens", "5000")
    summary = lines(result)[-1]
    (use,) = summary["models"]
    assert use["tokens_in"] + use["tokens_out"] < 10_000 and use["usd"] > 0
    assert "--max-tokens 5000" in summary["failures"][0]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--proposer", "llm"), "--proposer llm: name a model"),
        (("--model", "m"), "only --proposer llm asks a model"),
        (("--base-url", "http://127.0.0.1:9/v1"), "--base-url http://127.0.0.1:9/v1: only --proposer llm asks a model"),
        (("--max-usd", "2"), "--max-usd 2.0: only --proposer llm asks a model"),
        (("--no-repair",), "--no-repair: only --proposer llm asks a model"),
        (("--sampler", "random"), "--sampler random: only --proposer llm and policy:FOLDER are shown a prompt"),
        (("--proposer", "llm", "--model", "m,heat=3"), "`heat=3` is no setting; give NAME=VALUE with url, temperature"),
        (("--proposer", "llm", "--model", "m,temperature=hot"), "temperature: must be a number"),
        (("--proposer", "llm", "--model", "m,temperature=inf"), "temperature: must be a finite number"),
        (("--proposer", "llm", "--model", "m,timeout_s=inf"), "timeout_s: must be a finite number"),
        (("--proposer", "llm", "--model", "m,retries=1,retries=2"), "`retries` is given twice; give it once"),
        (("--proposer", "llm", "--model", ",temperature=1"), "name: is missing"),
        (("--proposer", "llm", "--model", "m", "--base-url", "localhost:1"), "is not the address of an endpoint"),
        (("--proposer", "llm", "--model", "m", "--base-url", "http://a:b@c/v1"), "leave keys out of the address"),
        (("--proposer", "llm", "--model", "m", "--max-usd", "0"), "--max-usd 0.0: nothing fits"),
        (("--proposer", "llm", "--model", "m", "--max-usd", "inf"), "--max-usd inf: is no limit; leave it out"),
        (("--proposer", "llm", "--model", "m", "--sampler", "best"), "--sampler best: kind: must be"),
        (
            ("--proposer", "llm", "--model", "m", "--prompt", "contrastive,profile=maybe"),
            "profile: must be true or false",
        ),
        (("--proposer", "llm", "--model", "m", "--key-file", "absent"), "key file absent: cannot be read"),
        (("--proposer", "llm", "--model", "m", "--prices", "absent.toml"), "prices absent.toml: cannot be read"),
        (("--proposer", "llm", "--model", "m", "--prompt", "contrastive,template=absent.j2"), "absent.j2"),
        (("--proposer", "llm:m"), "models are named with --model"),
    ],
)
def test_a_mistake_is_one_line(run: Run, reference: Path, words: tuple[str, ...], says: str) -> None:
    asks = "llm" in words and "--base-url" not in words
    where = ("--base-url", "http://127.0.0.1:9/v1") if asks else ()
    result = run("optimize", reference, "--device", "cpu", *words, *where)
    assert result.exit_code == 2, result.stderr
    assert says in result.stderr and result.stderr.count("\n") == 1
    assert not Path("ref_optimized.py").exists()


def test_a_model_that_says_where_it_is_needs_no_other_address(
    run: Run, reference: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with serving(series("# speedup 3.0")) as server:
        words = ("--proposer", "llm", "--model", f"m,concurrency=1,url={server.url}", "--budget", "2", "--json")
        result = run("optimize", reference, "--device", "cpu", *words)
    assert result.exit_code == 0, result.stderr


def keys_at(server: LlmServer) -> set[str]:
    return {headers["authorization"].removeprefix("Bearer ") for headers in server.headers}


def test_the_key_of_the_environment_goes_to_the_address_of_the_environment_alone(ask: Ask) -> None:
    with serving("no") as here, serving("no") as there:
        own = f"other,url={there.url}"
        result = ask(here, "--model", own, "--budget", "1")
        assert keys_at(here) == {KEY} and keys_at(there) == {"none"}
        (line,) = [line for line in result.stderr.splitlines() if line.startswith("no key is sent to other at 127.")]
        assert "key_env=OPENAI_API_KEY" in line and KEY not in result.stderr
        result = ask(here, "--model", f"{own},key_env=OPENAI_API_KEY", "--budget", "1")
        assert KEY in keys_at(there) and "no key is sent" not in result.stderr


def test_an_address_on_the_command_line_gets_a_key_that_was_given_for_it(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-from-a-file\n")
    with serving("no") as here, serving("no") as there:
        elsewhere = ("--base-url", there.url, "--budget", "1")
        result = ask(here, *elsewhere)
        assert keys_at(there) == {"none"} and not here.headers
        place = here.url.split("/")[2]
        assert f"$OPENAI_API_KEY is for {place} alone ($OPENAI_BASE_URL)" in result.stderr and KEY not in result.stderr
        ask(here, *elsewhere, "--key-file", str(tmp_path / "key"))
        assert keys_at(there) == {"none", "sk-from-a-file"}
        ask(here, "--base-url", here.url.replace("/v1", "/v1/"), "--budget", "1")
        assert keys_at(here) == {KEY}
    with serving("no", keys=(KEY,)) as wants:
        result = ask("http://127.0.0.1:9/v1", "--base-url", wants.url)
    assert result.exit_code == 2 and "wants a key, and none was sent" in result.stderr
    assert "--key-file FILE those at --base-url" in result.stderr


def test_a_key_file_of_the_command_is_for_its_address_or_for_all(
    ask: Ask, run: Run, reference: Path, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("sk-from-a-file\n")
    words = ("--key-file", str(tmp_path / "key"), "--budget", "1")
    with serving("no") as here, serving("no") as there:
        own = f"other,url={there.url}"
        assert "no key is sent to other" in ask(here, "--model", own, *words).stderr
        assert keys_at(here) == {"sk-from-a-file"} and keys_at(there) == {"none"}
        run("optimize", reference, "--device", "cpu", "--proposer", "llm", "--model", own, *words)
        assert keys_at(there) == {"none", "sk-from-a-file"}
        ask(here, "--model", f"{own},key_env=OPENAI_API_KEY", *words)
        assert KEY in keys_at(there)


def test_who_wants_a_key_and_gets_none_says_how_to_give_one(ask: Ask) -> None:
    with serving("yes") as here, serving("yes", keys=(KEY,)) as there:
        result = ask(here, "--model", f"other,url={there.url}")
        assert result.exit_code == 2 and result.stderr.count("\n") == 1, result.stderr
        assert "wants a key, and none was sent" in result.stderr and "key_file=FILE or key_env=" in result.stderr
        result = ask(here, "--model", f"other,url={there.url},key_env=NOT_SET_AT_ALL")
        assert result.exit_code == 2 and "key_env=NOT_SET_AT_ALL: $NOT_SET_AT_ALL is not set" in result.stderr


def test_without_an_address_and_a_key_it_is_asked_for_one(
    run: Run, reference: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    result = run("optimize", reference, "--proposer", "llm", "--model", "m", "--device", "cpu")
    assert result.exit_code == 2 and "Set $OPENAI_BASE_URL or give --base-url" in result.stderr


@pytest.fixture
def nowhere() -> Iterator[str]:
    """An address at which nobody listens, and nobody else can begin to."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


def test_nobody_at_the_address_is_said_before_anything_is_measured(ask: Ask, nowhere: str) -> None:
    result = ask(nowhere)
    assert result.exit_code == 3 and "cannot be reached" in result.stderr and result.stderr.count("\n") == 1


def test_a_wrong_key_is_said_before_anything_is_measured(ask: Ask) -> None:
    with serving("yes", keys=("another",)) as server:
        result = ask(server)
    assert result.exit_code == 2 and "refuses the key" in result.stderr and result.stderr.count("\n") == 1
    assert "it is from $OPENAI_API_KEY" in result.stderr
    assert KEY not in result.stderr and not server.asked


@pytest.mark.parametrize(
    ("rules", "code", "says"),
    [
        ({"strict": True, "models": ("another",)}, 2, "The model `m` does not exist"),
        ({"context_tokens": 10}, 3, "maximum context length is 10 tokens"),
        (
            {"answers": b"<html>a web page</html>"},
            3,
            "no chat completion: it is a web page; the URL usually ends in /v1",
        ),
    ],
)
def test_a_model_that_never_replies_ends_in_one_line(ask: Ask, rules: dict[str, Any], code: int, says: str) -> None:
    body = rules.pop("answers", "yes")
    with serving(body, **rules) as server:
        result = ask(server)
    assert result.exit_code == code, result.stderr
    assert says in result.stderr.splitlines()[-1]


def test_beside_techniques_such_a_model_is_a_line_of_the_result(ask: Ask) -> None:
    with serving((404, "no such model")) as server:
        result = ask(server, "--proposer", "techniques:straight_line,llm")
    assert result.exit_code in (0, 1)
    assert any("no such model" in line for line in lines(result)[-1]["failures"])


def test_the_key_is_nowhere_in_what_is_kept(ask: Ask, tmp_path: Path) -> None:
    with serving(series("# speedup 2.0"), (500, KEY)) as server:
        ask(server, "--budget", "2")
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert kept and not [path for path in kept if KEY.encode() in path.read_bytes()]


def test_bench_searches_with_models_too(run: Run, reference: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeEvaluator, "footprint", lambda self, task: None, raising=False)
    with serving(series("# speedup 2.0")) as server:
        words = ("--proposer", "llm", "--model", "m,concurrency=1", "--base-url", server.url, "--budget", "2", "--json")
        result = run("bench", reference, "--device", "cpu", "--baselines", "eager", "--optimize", *words)
    assert result.exit_code == 0, result.stderr
    *_, row, summary = lines(result)
    assert row["ours"]["technique"] == "m" and row["ours"]["speedup_eager"] == pytest.approx(2.0)
    (paid,) = row["models"]
    assert summary["models"] == [paid] and paid["replies"] == len(server.asked) == 2
    assert paid["gains"] == 1 and paid["tokens_in"] > 100
    assert paid["confirmed_speedup"] == pytest.approx(2.0)


def test_bench_says_what_models_cost_on_each_task_and_in_all(
    run: Run, reference: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeEvaluator, "footprint", lambda self, task: None, raising=False)
    Path("suite").mkdir()
    for name, operator in (("one", "tanh"), ("two", "sigmoid")):
        Path(f"suite/{name}.py").write_text(reference.read_text().replace("relu", operator))
    Path("prices.toml").write_text(PRICES)
    words = ["bench", "suite", "--device", "cpu", "--baselines", "eager", "--optimize", "--proposer", "llm"]
    with serving(series("# speedup 3.0")) as server:
        words += ["--model", "m,concurrency=1", "--base-url", server.url, "--budget", "2", "--prices", "prices.toml"]
        first = run(*words)
        again = run(*words, "--json")
        assert len(server.asked) == 4, "a search that ended was paid for again"
    assert first.exit_code == again.exit_code == 0, first.stderr
    one, two, summary = lines(again)
    (total,), paid = summary["models"], [row["models"][0] for row in (one, two)]
    assert [use["replies"] for use in paid] == [2, 2] and total["replies"] == 4
    assert total["usd"] == pytest.approx(sum(use["usd"] for use in paid)) and total["usd"] > 0
    assert [use["confirmed_speedup"] for use in paid] == [pytest.approx(3.0), None]
    assert total["confirmed_speedup"] == pytest.approx(3.0) and total["usd_per_gain"] == total["usd"]
    table = [line.split() for line in first.stdout.splitlines() if " m at 127." in f" {line}"]
    assert [row[0] for row in table] == ["one", "two", "m"] and table[0][-1] == f"{paid[0]['usd']:.4f}"


def test_from_python(reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    import cuda_l1
    import cuda_l1.evaluator
    from cuda_l1.config import LlmSettings, ModelSettings

    monkeypatch.setattr(cuda_l1.evaluator, "Evaluator", FakeEvaluator)
    with serving("nothing") as server:
        made = cuda_l1.optimize(
            torch.nn.ReLU(),
            torch.randn(4, 4),
            device="cpu",
            budget=2,
            proposers=("llm",),
            llm=LlmSettings(models=(ModelSettings(name="m", url=server.url, concurrency=1),)),
            archive=tmp_path / "a.sqlite",
        )
    assert made.report["outcome"] == "no-improvement"
    assert "20 replies in a row held nothing new" in made.report["failures"][0]
