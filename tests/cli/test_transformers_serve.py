"""Real language models behind somebody else's server: the replies of one are nonsense, and each ends as a reason; the
other is a policy as training writes it, and its replies are candidates."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_fakes import FAST, REFERENCE
from typer.testing import Result

from cuda_l1.archive import Archive
from cuda_l1.endpoint import Answer, Chat
from cuda_l1.errors import EndpointError
from cuda_l1.prompts.reply import parse_reply
from llm_server.random_model import PIECES, make
from llm_server.transformers_serve import transformers_serve
from small_policy import save_policy

needs_server = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("transformers", "accelerate", "fastapi", "uvicorn")),
    reason="needs transformers with its server: pip install -e '.[dev]'",
)
pytestmark = [pytest.mark.e2e, needs_server]


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("random_model")
    make(folder)
    return folder


@pytest.fixture(scope="module")
def url(model: Path) -> Iterator[str]:
    with transformers_serve(model) as url:
        yield url


def ask(url: str, model: str, count: int = 1) -> list[Answer]:
    async def asked() -> list[Answer]:
        chat = Chat(url, model, key="none", timeout_s=60, retries=0)
        try:
            return [await chat.ask("", "Make it faster.", temperature=1.0, max_tokens=300) for _ in range(count)]
        finally:
            await chat.close()

    return asyncio.run(asked())


def test_nonsense_is_counted_and_holds_no_candidate(url: str, model: Path) -> None:
    answers = ask(url, str(model), count=4)
    said = "".join(answer.text for answer in answers)
    assert sum(piece in said for piece in PIECES) >= 6, "the model says nothing that a parser looks for"
    for answer in answers:
        assert answer.finish_reason in ("stop", "length")
        assert answer.tokens_in and answer.tokens_in > len("Make it faster.") and answer.tokens_out is not None
        found = parse_reply(answer.text, finish_reason=answer.finish_reason)
        assert found.source is None and found.problem and found.detail.isprintable()


def test_the_server_s_own_words_are_told(url: str) -> None:
    with pytest.raises(EndpointError, match=r"HTTP 400: .*'another'"):
        ask(url, "another")


def test_a_search_with_it_ends_with_a_ledger(
    run: Callable[..., Result], reference: Path, url: str, model: Path
) -> None:
    chosen = f"{model},max_tokens=100,temperature=1.0,concurrency=1"
    words = ("--proposer", "llm", "--model", chosen, "--base-url", url, "--no-repair", "--max-tokens", "25000")
    result = run("optimize", reference, "--device", "cpu", "--budget", "5", "--json", *words)
    assert result.exit_code == 1, result.stderr
    (use,) = json.loads(result.stdout.splitlines()[-1])["models"]
    assert use["replies"] >= 2 and use["candidates"] == 0
    assert sum(use["problems"].values()) == use["replies"]
    assert use["tokens_in"] > 1000 * use["replies"] and use["tokens_out"] <= 100 * use["replies"]
    with Archive.open() as archive:
        assert len([reply for reply in archive.replies.all() if reply.model == str(model)]) == use["replies"]


SPEEDUPS = (2.0, 3.0, 4.0)
CHAT = {"start_anchor": "<|assistant|>", "fields": {"content": {"close": "<|end|>", "content": "text"}}}
"""How to read what it says: a server takes a Qwen3's conversation for ChatML, which this policy does not speak."""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """As a stage leaves it, in shards: it writes one of three right replies, whatever it is asked."""
    from cuda_l1.training.loading import load_policy
    from cuda_l1.training.loading import save_policy as save
    from cuda_l1.training.recipe import recipe_from

    replies = [f"```python\n{REFERENCE}\n# speedup {number}\n{FAST}```\n" for number in SPEEDUPS]
    recipe = recipe_from({"run_dir": "run", "run": {"device": "cpu", "shard_mib": 1}}, "a test")
    start = load_policy(save_policy(tmp_path / "start", replies=replies), recipe, longest=64)
    start.tokenizer.response_template = CHAT
    save(start.model, start.tokenizer, tmp_path / "final", recipe=recipe)
    return tmp_path / "final"


def test_a_trained_policy_writes_candidates_through_a_server(
    run: Callable[..., Result], reference: Path, policy: Path
) -> None:
    pytest.importorskip("trl", reason="needs transformers and TRL")
    with transformers_serve(policy) as url:
        chosen = f"{policy},max_tokens=8,temperature=1.0,concurrency=1"
        words = ("--proposer", "llm", "--model", chosen, "--base-url", url, "--no-repair", "--max-tokens", "200000")
        result = run("optimize", reference, "--device", "cpu", "--budget", "2", "--json", *words)
    assert result.exit_code == 0, result.stderr
    summary = json.loads(result.stdout.splitlines()[-1])
    (use,) = summary["models"]
    assert use["model"] == str(policy) and use["candidates"] >= 2, "it samples: not every reply is the same"
    assert summary["speedup_eager"] in SPEEDUPS
