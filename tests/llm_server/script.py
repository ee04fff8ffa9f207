"""Which answers the server gives, and to whom; from a test or from a TOML file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llm_server.answers import Answer, Reply, Request, answer_of, prompt_tokens


@dataclass(kw_only=True)
class Script:
    """A server's rules and its answers in order."""

    answers: list[Reply] = field(default_factory=lambda: [Answer()])
    models: tuple[str, ...] = ("test-model",)
    """What `/v1/models` lists."""
    strict: bool = False
    """Answers 404 to a question for any other model."""
    keys: tuple[str, ...] = ()
    """Keys that it knows, if it asks for one: 401 for any other."""
    context_tokens: int | None = None
    """A longer prompt is refused with 400; a token is four characters."""
    concurrency: int | None = None
    """More questions at a time are refused with 429 and Retry-After."""
    knows_schemas: bool = True
    """Takes a `response_format`."""

    def __post_init__(self) -> None:
        self._given = [0] * len(self.answers)

    def answer(self, request: Request, *, in_flight: int = 1) -> Answer:
        """The answer to a question; `in_flight` counts it and those not yet answered."""
        return self._refusal(request, in_flight) or self._next(request)

    def _refusal(self, request: Request, in_flight: int) -> Answer | None:
        model, asked = request.get("model"), prompt_tokens(request)
        if self.strict and model not in self.models:
            return Answer(status=404, error=f"The model `{model}` does not exist", code="model_not_found")
        if self.context_tokens is not None and asked > self.context_tokens:
            says = f"This model's maximum context length is {self.context_tokens} tokens, not {asked}"
            return Answer(status=400, error=says, code="context_length_exceeded")
        if self.concurrency is not None and in_flight > self.concurrency:
            return Answer(status=429, error="Rate limit reached", headers={"Retry-After": "1"})
        if "response_format" in request and not self.knows_schemas:
            return Answer(status=400, error="unknown field response_format")
        return None

    def _next(self, request: Request) -> Answer:
        fitting = [i for i, reply in enumerate(self.answers) if not isinstance(reply, Answer) or reply.fits(request)]
        if not fitting:
            return Answer(status=500, error="the script has no answer to this question")
        left = [i for i in fitting if self._given[i] < getattr(self.answers[i], "times", 1)]
        chosen = (left or fitting[-1:])[0]
        self._given[chosen] += 1
        reply = self.answers[chosen]
        return answer_of(reply(request) if callable(reply) else reply)


def load(path: Path) -> Script:
    """A script from TOML: fields of Script, and a table `[[answer]]` with fields of Answer for each answer.

    Raises TypeError for a field that neither has, tomllib.TOMLDecodeError, OSError.
    """
    fields: dict[str, Any] = tomllib.loads(path.read_text())
    answers = [_answer(table) for table in fields.pop("answer", [{}])]
    lists = {name: tuple(fields.pop(name)) for name in ("models", "keys") if name in fields}
    return Script(answers=answers, **lists, **fields)


def _answer(table: dict[str, Any]) -> Answer:
    body = table.pop("body", None)
    return Answer(**table, body=None if body is None else body.encode())
