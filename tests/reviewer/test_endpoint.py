"""One question to a real HTTP server, and every way in which it can go wrong."""

from __future__ import annotations

import socket
import time

import pytest

from cuda_l1.endpoint import Endpoint, one_line
from cuda_l1.errors import EndpointError
from llm_server import DRIP, NEVER, Reply, serving

FORM = {"type": "object", "properties": {"verdict": {"type": "string"}}, "required": ["verdict"]}


def ask(url: str, model: str | None = "m", within_s: float = 20.0) -> str:
    return Endpoint(url, model).ask("be brief", "well?", form=FORM, within_s=within_s)


def test_a_question_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-for-this-place")
    with serving("an answer") as server:
        answer = Endpoint(server.url, "m", key="a-key").ask("be brief", "well?", form=FORM, within_s=20)
        assert answer == "an answer"
        request = server.requests[0]
        assert [m["role"] for m in request["messages"]] == ["system", "user"]
        assert (request["model"], request["temperature"]) == ("m", 0)
        assert request["response_format"]["json_schema"]["schema"] == FORM
        assert not request.get("stream")
        assert server.headers[0]["authorization"] == "Bearer a-key"


def test_a_server_of_ones_own_needs_no_key_and_no_model() -> None:
    with serving("yes", models=("only",)) as server:
        endpoint = Endpoint(server.url)
        assert endpoint.ask("", "?", form=FORM, within_s=20) == "yes"
        assert server.requests[0]["model"] == "only"
        assert endpoint.name == f"only at {server.url.split('/')[2]}"


@pytest.mark.parametrize(("models", "says"), [((), "serves 0 models"), (("a", "b"), r"2 models, name one \(a, b\)")])
def test_among_several_models_one_must_be_named(models: tuple[str, ...], says: str) -> None:
    with serving("yes", models=models) as server:
        with pytest.raises(EndpointError, match=says) as caught:
            ask(server.url, model=None)
        assert caught.value.lasting


def test_a_server_without_schemas_is_asked_without_one() -> None:
    with serving("fine") as server:
        server.script.knows_schemas = False
        assert ask(server.url) == "fine"
        assert "response_format" not in server.requests[-1] and "temperature" not in server.requests[-1]


@pytest.mark.parametrize(
    ("reply", "says", "lasting"),
    [
        ((401, "bad key"), r"wants a key, and none was sent \(HTTP 401: bad key\)", True),
        ((403, "not you"), "refuses the key", True),
        ((404, "no model m"), r"no such address or model; .*/v1 \(HTTP 404: no model m\)", True),
        ((400, "too\nlong \x1b[31m"), r"refuses the question \(HTTP 400: too long \[31m\)", False),
        ((429, "slow down"), "no more questions for now", False),
        ((500, "oops"), r"it failed \(HTTP 500: oops\)", False),
        (b"<html>hello</html>", "no chat completion: it is a web page; the URL usually ends in /v1", False),
        (b"", "no chat completion: it is empty; the URL", False),
        (b"fine\nthanks", "no chat completion: it is no JSON, and begins with `fine thanks`; the URL", False),
        (b"data: {}\n\n", "no chat completion: it is a stream", False),
        (b"[1, 2]", r"it is JSON of another form, and begins with `\[1, 2\]`; the URL", False),
        (b'{"object": "list", "data": []}', r"without `choices` \(it has object, data\); the URL", False),
        (b'{"detail": "no such route"}', r"it failed \(no such route\)", False),
        (b'{"choices": []}', "no chat completion: `choices` is empty; the server's log may say why", False),
        (b'{"choices": {}}', "`choices` is empty", False),
        (b'{"choices": [5]}', "its first choice is no object", False),
        (b'{"choices": [{"text": "x"}]}', r"has no `message` \(it has text\); the model may be none", False),
        (b'{"error": {"message": "no \\u001b provider", "code": 502}}', r"it failed \(no provider\)", False),
        (b'{"error": "no credit", "choices": []}', r"it failed \(no credit\)", False),
        (b'{"choices": [{"message": {"content": null}}]}', "holds no text", False),
        (b"[" * 50_000, "no chat completion", False),
        ("  ", "holds no text", False),
    ],
)
def test_a_failure_is_one_line(reply: Reply, says: str, lasting: bool) -> None:
    with serving(reply) as server, pytest.raises(EndpointError, match=says) as caught:
        ask(server.url)
    assert caught.value.lasting is lasting
    assert str(caught.value).isprintable()


def test_a_passing_failure_is_tried_again() -> None:
    with serving((429, "wait"), (503, "wait"), "there you are") as server:
        assert ask(server.url) == "there you are"
        assert len(server.requests) == 3


@pytest.mark.parametrize("reply", [NEVER, DRIP])
def test_a_slow_server_is_left_in_time(reply: Reply) -> None:
    began = time.monotonic()
    with serving(reply) as server, pytest.raises(EndpointError, match=r"no answer within 0\.5 s") as caught:
        ask(server.url, within_s=0.5)
    assert caught.value.lasting
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("url", ["http://127.0.0.1:{port}/v1", "http://no-such-host.invalid/v1"])
def test_nobody_there(url: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: nobody else can answer there
        with pytest.raises(EndpointError, match=r"cannot be reached|no answer") as caught:
            ask(url.format(port=taken.getsockname()[1]))
    assert caught.value.lasting


def test_foreign_text_becomes_one_printable_line() -> None:
    assert one_line(" a\n\tb\x1b[0m \x00c\u202e ", 50) == "a b [0m c"
    assert one_line("x" * 100, 10) == "xxxxxxx..."
