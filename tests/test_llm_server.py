"""The test server, asked by the `openai` package as our client asks it, and as a program."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import openai
import pytest

from llm_server import Answer, LlmServer, load, serving

PROGRAM = Path(__file__).parent / "llm_server"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield


def ask(server: LlmServer, text: str = "well?", *, model: str = "m", key: str = "k", **more: Any) -> Any:
    with openai.OpenAI(base_url=server.url, api_key=key, max_retries=0, timeout=5) as client:
        return client.chat.completions.create(model=model, messages=[{"role": "user", "content": text}], **more)


def test_answers_come_in_order_and_the_last_stays() -> None:
    with serving("one", lambda request: f"two for {request['model']}", (503, "busy"), "three") as server:
        said = [ask(server).choices[0].message.content for _ in range(2)]
        with pytest.raises(openai.InternalServerError, match="busy"):
            ask(server)
        said += [ask(server).choices[0].message.content for _ in range(2)]
        assert said == ["one", "two for m", "three", "three"]
        assert server.questions() == ["well?"] * 5


def test_an_answer_is_for_whom_it_is_for() -> None:
    script = [Answer(text="a", model="a"), Answer(text="x", contains='"x"\n', times=2), Answer(text="rest")]
    with serving(*script) as server:
        asked = [("a", "?"), ("a", "?"), ("b", '"x"\n'), ("b", '"x"\n'), ("b", '"x"\n'), ("b", "?")]
        said = [ask(server, text, model=model).choices[0].message.content for model, text in asked]
        assert said == ["a", "rest", "x", "x", "rest", "rest"]


def test_a_whole_answer_is_counted() -> None:
    with serving(Answer(text="x" * 9, reasoning="y" * 3, finish="length")) as server:
        answer = ask(server, "z" * 8)
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (2, 3, 5)
    assert answer.choices[0].finish_reason == "length"
    assert answer.choices[0].message.reasoning_content == "yyy"


def test_usage_may_be_wrong_or_missing() -> None:
    with serving(Answer(usage="none"), Answer(usage={"total_tokens": -1})) as server:
        assert ask(server).usage is None
        assert ask(server).usage.total_tokens == -1


RULES: dict[str, Any] = {"keys": ("k",), "strict": True, "models": ("m",), "context_tokens": 10}


@pytest.mark.parametrize(
    ("more", "raises", "code"),
    [
        ({"key": "other"}, openai.AuthenticationError, "invalid_api_key"),
        ({"model": "n"}, openai.NotFoundError, "model_not_found"),
        ({"text": "x" * 41}, openai.BadRequestError, "context_length_exceeded"),
    ],
)
def test_rules_are_enforced(more: dict[str, Any], raises: type[openai.APIStatusError], code: str) -> None:
    with serving("fine", **RULES) as server:
        assert ask(server).choices[0].message.content == "fine"
        with pytest.raises(raises) as caught:
            ask(server, **more)
        assert caught.value.code == code


def test_a_rate_limit_says_when_to_come_again() -> None:
    with serving(Answer(status=429, error="slow down", headers={"Retry-After": "7"})) as server:
        with pytest.raises(openai.RateLimitError, match="slow down") as caught:
            ask(server)
        assert caught.value.response.headers["retry-after"] == "7"


@pytest.mark.parametrize("fault", ["never", "cut", "drop"])
def test_a_connection_may_break(fault: Any) -> None:
    with serving(Answer(text="x" * 1000, fault=fault)) as server, pytest.raises(openai.APIConnectionError):
        ask(server, timeout=0.3)


@pytest.mark.parametrize("fault", ["drip", "flood"])
def test_an_answer_may_have_no_end(fault: Any) -> None:
    with serving(Answer(fault=fault)) as server, socket.create_connection(server.address) as line:
        line.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
        answer = b"".join(line.recv(65536) for _ in range(4))
        assert answer.startswith(b"HTTP/1.1 200 OK") and b"content-length" not in answer.lower()
        assert answer.endswith(b" ")


async def many(server: LlmServer, count: int) -> list[str]:
    async with openai.AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        question: Any = [{"role": "user", "content": "?"}]
        answers = [client.chat.completions.create(model="m", messages=question) for _ in range(count)]
        return [type(answer).__name__ for answer in await asyncio.gather(*answers, return_exceptions=True)]


def test_questions_at_a_time_are_counted_and_limited() -> None:
    with serving(Answer(delay_s=0.5), concurrency=3) as server:
        names = asyncio.run(many(server, 5))
        assert sorted(names) == ["ChatCompletion"] * 3 + ["RateLimitError"] * 2
        assert 4 <= server.most_in_flight <= 5
        with urlopen(f"{server.url.removesuffix('/v1')}/stats") as answer:
            stats = json.load(answer)
        assert stats["questions"] == 5 and stats["most_in_flight"] == server.most_in_flight and stats["held_s"] > 1.5


def test_it_is_a_proxy_for_any_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving("by proxy") as server:
        monkeypatch.delenv("NO_PROXY")
        monkeypatch.setenv("HTTP_PROXY", server.url.removesuffix("/v1"))
        with openai.OpenAI(base_url="http://models.invalid/v1", api_key="k", max_retries=0) as client:
            answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])
        assert answer.choices[0].message.content == "by proxy"
        assert server.asked[0].target == "http://models.invalid/v1/chat/completions"


SCRIPT = """
models = ["a", "b"]
context_tokens = 100

[[answer]]
status = 429
headers = {Retry-After = "0"}

[[answer]]
text = '''
several
lines'''
"""


def test_a_script_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "script.toml"
    path.write_text(SCRIPT)
    script = load(path)
    assert (script.models, script.context_tokens) == (("a", "b"), 100)
    assert script.answers[1] == Answer(text="several\nlines")


def test_it_is_a_program(tmp_path: Path) -> None:
    path = tmp_path / "script.toml"
    path.write_text(SCRIPT)
    command = [sys.executable, str(PROGRAM), "--script", str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr
        first = program.stderr.readline()
        assert first.startswith("serving a, b at http://127.0.0.1:")
        with openai.OpenAI(base_url=first.split()[4].rstrip(";"), api_key="k", max_retries=1) as client:
            assert [model.id for model in client.models.list()] == ["a", "b"]
            answer = client.chat.completions.create(model="a", messages=[{"role": "user", "content": "?"}])
            assert answer.choices[0].message.content == "several\nlines"
        program.send_signal(signal.SIGINT)
        assert program.stderr.read() == "answered 2 questions, at most 1 at a time\n"


@pytest.mark.parametrize(
    ("text", "says"), [("a = [", "Invalid"), ("[[answer]]\nwrong = 1", "'wrong'"), (None, "No such")]
)
def test_a_wrong_script_is_one_line(tmp_path: Path, text: str | None, says: str) -> None:
    path = tmp_path / "script.toml"
    if text is not None:
        path.write_text(text)
    ended = subprocess.run([sys.executable, str(PROGRAM), "--script", str(path)], capture_output=True, text=True)
    assert ended.returncode == 2 and says in ended.stderr and "Traceback" not in ended.stderr
