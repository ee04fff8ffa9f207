"""Many questions at a time to a real HTTP server, and what no caller should have to think of."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import subprocess
import time
from pathlib import Path

import pytest

from cuda_l1.endpoint import Answer, Background, Chat, key_for, read_key
from cuda_l1.errors import EndpointError, UsageError
from llm_server import Answer as Said
from llm_server import Reply, serving

KEY = "sk-very-secret-1234"


def ask(url: str, **more: object) -> Answer:
    async def asked() -> Answer:
        chat = Chat(url, "m", key=KEY, timeout_s=20)
        try:
            return await chat.ask("be brief", "well?", **more)  # type: ignore[arg-type]
        finally:
            await chat.close()

    return asyncio.run(asked())


def test_an_answer_has_its_text_its_end_and_its_tokens_and_no_thoughts() -> None:
    with serving(Said(text="x = 1", reasoning="hmm " * 8, finish="length")) as server:
        answer = ask(server.url, temperature=0.5, max_tokens=99)
    assert (answer.text, answer.finish_reason, answer.thought) == ("x = 1", "length", True)
    assert (answer.tokens_in, answer.tokens_out) == (2 + 2, 10)
    request = server.requests[0]
    assert (request["temperature"], request["max_tokens"]) == (0.5, 99)
    assert not request.get("stream")


def test_what_is_not_asked_for_is_not_sent() -> None:
    with serving("yes") as server:
        ask(server.url)
    assert set(server.requests[0]) <= {"messages", "model", "stream"}


@pytest.mark.parametrize(
    "said",
    [
        Said(text=None, refusal="I would rather not"),
        Said(text="x", usage="none"),
        Said(text="x", usage={"prompt_tokens": "many", "completion_tokens": -1}),
        Said(text="x", usage={"prompt_tokens": 10**400, "completion_tokens": 1e9}),
        Said(text="half a pair \ud800 and a zero \0"),
    ],
)
def test_odd_completions_are_answers(said: Said) -> None:
    with serving(said) as server:
        answer = ask(server.url)
    assert answer.text == (said.text or "").replace("\ud800", "?").replace("\0", "�")
    assert answer.refusal == (said.refusal or "")
    assert (answer.tokens_in is None) == (said.usage != "counted")
    json.dumps(answer.text, ensure_ascii=False).encode()


def test_of_a_list_of_parts_only_text_is_the_answer() -> None:
    thoughts = {"type": "thinking", "thinking": [{"type": "text", "text": "no"}]}
    parts = [thoughts, {"type": "text", "text": "x = "}, {"type": "text", "text": "1"}, {"type": "text"}, "odd", None]
    body = json.dumps({"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}).encode()
    with serving(body) as server:
        answer = ask(server.url)
    assert (answer.text, answer.finish_reason, answer.thought) == ("x = 1", "stop", True)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (json.dumps({"error": {"message": f"not with {KEY}"}}).encode(), r"it failed \(not with \*\*\*\)"),
        (f"not with {KEY}".encode(), r"begins with `not with \*\*\*`"),
        (json.dumps({KEY: 1}).encode(), r"it has \*\*\*"),
    ],
)
def test_a_failure_that_repeats_the_key_does_not_show_it(body: bytes, says: str) -> None:
    with serving(body) as server, pytest.raises(EndpointError, match=says) as caught:
        ask(server.url)
    assert KEY not in str(caught.value)


def test_a_model_that_wants_its_limit_under_the_other_name_gets_it() -> None:
    says = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    with serving((400, says), "done") as server:
        assert ask(server.url, max_tokens=7).text == "done"
    assert server.requests[1]["max_completion_tokens"] == 7 and "max_tokens" not in server.requests[1]


def test_an_answer_that_breaks_off_on_the_way_is_asked_for_again() -> None:
    with serving(Said(fault="cut", text="x" * 500), Said(fault="drop"), "whole") as server:
        assert ask(server.url).text == "whole"


def test_one_that_always_breaks_off_is_one_line() -> None:
    with serving(Said(fault="cut", text="x" * 500)) as server, pytest.raises(EndpointError) as caught:
        ask(server.url)
    assert "\n" not in str(caught.value)


def test_an_endless_answer_is_left() -> None:
    with serving(Said(fault="flood")) as server, pytest.raises(EndpointError, match="longer than 16 MiB"):
        ask(server.url)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("status", [400, 500])
def test_so_is_an_endless_failure(status: int) -> None:
    with serving(Said(status=status, fault="flood")) as server, pytest.raises(EndpointError, match=f"HTTP {status}"):
        ask(server.url)


def test_words_of_a_server_made_with_fastapi_are_told() -> None:
    said = Said(status=400, body=b'{"detail": "it serves another model"}')
    with serving(said) as server, pytest.raises(EndpointError, match="HTTP 400: it serves another model"):
        ask(server.url)


@pytest.mark.parametrize("reply", [(401, f"Incorrect API key provided: {KEY}"), (500, KEY), (400, f"x{KEY}x")])
def test_a_key_that_the_server_repeats_is_blotted_out(reply: Reply) -> None:
    with serving(reply) as server, pytest.raises(EndpointError) as caught:
        ask(server.url)
    assert KEY not in str(caught.value) and "***" in str(caught.value)
    assert caught.value.__cause__ is None
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_the_server_says_how_long_to_wait() -> None:
    with serving(Said(status=429, error="slow down", headers={"Retry-After": "1"}), "now") as server:
        began = time.monotonic()
        assert ask(server.url).text == "now"
    assert time.monotonic() - began >= 1.0


def test_the_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving("through the proxy") as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        assert ask("http://no-such-host.invalid/v1").text == "through the proxy"


@pytest.fixture
def authority(tmp_path: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's side of TLS, and the certificate that vouches for it, which no machine knows."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl: apt-get install openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "ca.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    made += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate


def test_an_authority_of_ones_own_is_named_by_ssl_cert_file(
    authority: tuple[ssl.SSLContext, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    context, certificate = authority
    with serving("in private", tls=context) as server:
        with pytest.raises(EndpointError, match="SSL_CERT_FILE"):
            ask(server.url)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert ask(server.url).text == "in private"


def test_many_questions_are_in_flight_at_a_time() -> None:
    with serving(Said(text="yes", delay_s=0.2, times=100)) as server, Background() as background:
        chat = Chat(server.url, "m", key=KEY, timeout_s=20)
        asked = [background.submit(chat.ask("", str(i))) for i in range(40)]
        assert {future.result(20).text for future in asked} == {"yes"}
        background.submit(chat.close()).result(5)
        assert server.most_in_flight > 10


def test_closing_leaves_what_is_in_flight() -> None:
    with serving(Said(fault="never")) as server:
        background = Background()
        future = background.submit(Chat(server.url, "m", key=KEY, timeout_s=60).ask("", "?"))
        while not server.in_flight:
            time.sleep(0.01)
        background.close()
        assert future.cancelled()
        background.close()


def test_a_key_comes_from_a_file_or_from_the_environment(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("keys")
    (folder / "key").write_text(f"{KEY}\n# mine\n")
    assert read_key() == "none"
    assert read_key(str(folder / "key")) == KEY
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    assert read_key() == KEY
    for name, content in (("empty", b""), ("odd", "sk-é".encode()), ("binary", b"\xff\xfe")):
        (folder / name).write_bytes(content)
        with pytest.raises(UsageError, match=name) as caught:
            read_key(str(folder / name))
        assert "sk-" not in str(caught.value)
    with pytest.raises(UsageError, match="No such file"):
        read_key(str(folder / "absent"))


@pytest.mark.parametrize(
    ("base", "url", "sent"),
    [
        (None, "https://api.openai.com/v1", True),
        (None, "https://API.openai.com:443/other", True),
        (None, "http://api.openai.com/v1", False),
        (None, "https://api.openai.com.example.org/v1", False),
        (None, "http://localhost:8000/v1", False),
        ("http://localhost:8000/v1", "http://localhost:8000/v2", True),
        ("http://localhost:8000/v1", "http://localhost:8001/v1", False),
        ("http://localhost:8000/v1", "https://api.openai.com/v1", False),
        ("http://localhost:many/v1", "http://localhost:few/v1", False),
    ],
)
def test_the_key_of_the_environment_is_for_one_address(
    base: str | None, url: str, sent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANOTHER", "sk-another")
    if base is not None:
        monkeypatch.setenv("OPENAI_BASE_URL", base)
    assert key_for(url) == (KEY if sent else "none")
    assert key_for(url, variable="OPENAI_API_KEY") == KEY and key_for(url, variable="ANOTHER") == "sk-another"
