"""`collect --proposer llm` with a scripted server: each model's attempts are its own, and nothing is paid twice."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import REFERENCE, lines
from typer.testing import Result

from llm_server import Answer, LlmServer, Request, serving

pytest.importorskip("pyarrow", reason="a data set is parquet")

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test-0123456789")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "tasks"
    folder.mkdir()
    for name, operator in (("one", "sigmoid"), ("two", "tanh")):
        (folder / f"{name}.py").write_text(REFERENCE.replace("torch.relu(x)", f"torch.{operator}(x) * x.abs()"))


@pytest.fixture
def collect(run: Run) -> Callable[..., Result]:
    def collected(server: LlmServer, *words: str, models: tuple[str, ...] = ("m",)) -> Result:
        named = [word for model in models for word in ("--model", f"{model},concurrency=1")]
        limits = ("--base-url", server.url, "--no-repair", "--json", *words)
        return run("collect", "tasks", "--out", "set", "--device", "cpu", "--proposer", "llm", *named, *limits)

    return collected


def code(number: int, head: str = "# speedup 2.0") -> str:
    return f"```python\n{REFERENCE}\n{head}\nclass ModelNew(Model):\n    number = {number}\n```\n"


def attempts(result: Result) -> list[tuple[str, int, int]]:
    found = [line for line in lines(result) if line["kind"] == "attempts"]
    return [(line["by"], line["tried"], len(line["kept"])) for line in found]


def usage(tokens_in: int, tokens_out: int) -> dict[str, Any]:
    return {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}


def rows() -> list[dict[str, Any]]:
    from pyarrow import parquet

    return [row for file in Path("set/data").glob("*") for row in parquet.read_table(file).to_pylist()]


def test_each_model_tries_each_task_until_two_are_right(collect: Callable[..., Result]) -> None:
    numbers = itertools.count()

    def answer(request: Request) -> str:
        number = next(numbers)
        return "no code here" if number % 4 == 1 else code(number, "# outcome CRASHED" if number % 4 == 2 else "")

    with serving(answer) as server:
        result = collect(server, models=("m", "n"))
        assert result.exit_code == 0, result.stderr
        assert [(by, kept) for by, _, kept in attempts(result)] == [("m", 2), ("n", 2)] * 2
        paid = len(server.asked)
        again = collect(server, models=("m", "n"))
        assert again.exit_code == 0
        assert len(server.asked) == paid
    assert {(row["by"], row["proposer"]) for row in rows()} == {("m", "llm"), ("n", "llm")}
    assert all(row["prompt_sha"] and row["template"].startswith("one-shot") and row["tokens_in"] for row in rows())


def test_replies_without_a_candidate_are_attempts(collect: Callable[..., Result]) -> None:
    with serving(lambda request: "no code here") as server:
        result = collect(server, "--attempts", "3")
        assert result.exit_code == 1
        assert [tried for _, tried, _ in attempts(result)] == [3, 3]
        assert len(server.asked) == 6


def test_what_each_model_cost_is_said_at_the_end(collect: Callable[..., Result], run: Run) -> None:
    numbers = itertools.count()

    def answer(request: Request) -> Answer:
        text = code(next(numbers), "# outcome CRASHED" if request["model"] == "n" else "# speedup 2.0")
        return Answer(text=text, usage=usage(100, 10))

    with serving(answer) as server:
        for _ in range(2):  # the second time nothing is asked
            said = lines(collect(server, "--attempts", "2", models=("m", "n")))[-1]["models"]
            numbers_of = [(u["model"], u["replies"], u["accepted"], u["gains"], u["best_speedup"]) for u in said]
            assert sorted(numbers_of) == [("m", 4, 4, 4, 2.0), ("n", 4, 0, 0, None)]
            assert {(u["tokens_in"], u["tokens_out"], u["usd"]) for u in said} == {(400, 40, None)}
        words = ("--device", "cpu", "--proposer", "llm", "--model", "m", "--base-url", server.url, "--attempts", "1")
        shown = run("collect", "tasks", "--out", "set", "--no-repair", *words)
        assert "no price" in shown.stdout and "tokens in" in shown.stdout


def test_copies_are_attempts(collect: Callable[..., Result]) -> None:
    numbers = itertools.count()
    with serving(lambda request: code(next(numbers) // 10, "# outcome CRASHED")) as server:
        result = collect(server, "--attempts", "5")
        assert [tried for _, tried, _ in attempts(result)] == [5, 5]
        assert len(server.asked) == 10


def test_replies_from_before_an_interruption_are_attempts(collect: Callable[..., Result]) -> None:
    answers: list[Any] = []

    def answer(request: Request) -> Any:
        return answers.pop(0) if answers else "no code here"

    with serving(answer) as server:
        answers += ["no code here"] * 4 + [Answer(status=400, error="no")] * 9
        assert [tried for _, tried, _ in attempts(collect(server, "--attempts", "5"))] == [4, 0]
        answers.clear()
        asked = len(server.asked)
        assert [tried for _, tried, _ in attempts(collect(server, "--attempts", "5"))] == [5, 5]
        assert len(server.asked) == asked + 1 + 5


def test_one_name_at_two_endpoints_is_two_models(collect: Callable[..., Result]) -> None:
    with serving(lambda request: "no code here") as server, serving(lambda request: "no code here") as other:
        result = collect(server, "--attempts", "3", "--model", f"m,concurrency=2,url={other.url}")
        assert [(by, tried) for by, tried, _ in attempts(result)] == [("m", 3), ("m", 3)] * 2
        assert (len(server.asked), len(other.asked)) == (6, 6)


def test_one_model_asked_in_two_ways_is_one_model(collect: Callable[..., Result]) -> None:
    with serving(lambda request: "no code here") as server:
        result = collect(server, "--attempts", "5", "--model", "m,concurrency=1,temperature=0.5")
        assert [(by, tried) for by, tried, _ in attempts(result)] == [("m", 5)] * 2
        assert len(server.asked) == 10
        assert {request.get("temperature") for request in server.requests} == {None, 0.5}


def test_after_an_interruption_no_model_has_what_another_wrote(collect: Callable[..., Result]) -> None:
    numbers = itertools.count()
    is_up = False

    def answer(request: Request) -> Any:
        if request["model"] == "m":
            return code(next(numbers), "# outcome CRASHED")
        return code(next(numbers)) if is_up else Answer(status=400, error="no")

    with serving(answer) as server:
        first = collect(server, "--attempts", "2", models=("m", "n"))
        assert attempts(first) == [("m", 2, 0), ("n", 0, 0)] * 2
        is_up = True
        again = collect(server, "--attempts", "2", models=("m", "n"))
        assert attempts(again) == [("m", 2, 0), ("n", 2, 2)] * 2


def test_a_row_says_who_wrote_it_here_not_who_wrote_it_first(collect: Callable[..., Result]) -> None:
    with serving(lambda request: Answer(text=code(0), usage=usage(11, 12))) as server:
        collect(server, "--keep", "1", models=("first",))
    with serving(lambda request: Answer(text=code(0), usage=usage(21, 22))) as server:
        for _ in range(2):  # the second time from the run's log
            assert collect(server, "--keep", "1", models=("second",)).exit_code == 0
            assert {(row["by"], row["tokens_in"], row["tokens_out"]) for row in rows()} == {("second", 21, 22)}


def test_a_failing_endpoint_ends_no_task_and_the_next_run_asks_on(collect: Callable[..., Result]) -> None:
    numbers = itertools.count()

    def answer(request: Request) -> Any:
        number = next(numbers)
        return code(number) if number < 1 else Answer(status=400, error="no")

    with serving(answer) as server:
        result = collect(server)
        assert "not asked to the end" in result.stderr
    with serving(lambda request: code(next(numbers))) as server:
        result = collect(server)
        assert result.exit_code == 0, result.stderr
        assert [kept for _, _, kept in attempts(result)] == [2, 2]


def test_a_task_too_long_to_ask_about_leaves_the_others(collect: Callable[..., Result], tmp_path: Path) -> None:
    with (tmp_path / "tasks" / "one.py").open("a") as task:
        task.write("# a line of a long task\n" * 400)
    numbers = itertools.count()
    with serving(lambda request: code(next(numbers))) as server:
        result = collect(server, "--prompt", "one-shot,max_tokens=3000")
        assert result.exit_code == 0, result.stderr
        assert [kept for _, _, kept in attempts(result)] == [0, 2]
        assert "more than max_tokens = 3000" in result.stderr


def test_money_is_for_all_tasks_and_models_together(collect: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text("[m]\ninput = 1000\noutput = 2000\n[n]\ninput = 1000\noutput = 2000\n")
    numbers = itertools.count()
    with serving(lambda request: code(next(numbers))) as server:
        limits = ("--prices", str(tmp_path / "prices.toml"), "--max-usd", "0.001")
        result = collect(server, *limits, models=("m", "n"))
        assert result.exit_code == 1
        assert server.asked == []
        assert "not asked to the end" in result.stderr
