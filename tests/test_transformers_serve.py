"""What we ask of a language model, asked of a real one behind a real server: its replies are nonsense."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from llm_server.random_model import PIECES, make
from llm_server.transformers_serve import transformers_serve

needs_server = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("transformers", "accelerate", "fastapi", "uvicorn")),
    reason="needs transformers with its server: pip install -e '.[dev]'",
)
pytestmark = [pytest.mark.e2e, needs_server]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("random_model")
    make(folder)
    return folder


@pytest.fixture(scope="module")
def url(model: Path) -> Iterator[str]:
    with transformers_serve(model) as url:
        yield url


def ask(url: str, model: Path, **more: Any) -> Any:
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0, timeout=60) as client:
        return client.chat.completions.create(
            model=str(model), messages=[{"role": "user", "content": "Make it faster."}], temperature=1.0, **more
        )


def test_it_talks_nonsense_in_the_form_of_an_answer(url: str, model: Path) -> None:
    answer = ask(url, model, max_tokens=600)
    text = answer.choices[0].message.content
    assert sum(piece in text for piece in PIECES) >= 3
    assert answer.usage.completion_tokens <= 600 and answer.usage.prompt_tokens > len("Make it faster.")
