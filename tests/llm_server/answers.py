"""What the server says to one question: a chat completion, an error, or something that is neither."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Request = dict[str, Any]
"""The body of a question."""

CHARACTERS_PER_TOKEN = 4
"""This server's tokens: whoever knows a text knows what it counts as."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer. The plain `Answer(text="...")` is a complete one with a token count; the other fields spoil it."""

    text: str | None = ""
    reasoning: str | None = None
    """Goes out as `reasoning_content`."""
    refusal: str | None = None
    finish: str = "stop"
    usage: dict[str, Any] | Literal["counted", "none"] = "counted"
    status: int = 200
    error: str = ""
    """The message of an answer whose status is not 200."""
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """E.g. `{"Retry-After": "2"}`; an error without one may be tried again after a millisecond."""
    body: bytes | None = None
    """Sent in place of a completion or error."""
    content_type: str = "application/json"
    delay_s: float = 0.0
    spread_s: float = 0.0
    """Up to so much later, evenly spread."""
    fault: Literal["", "never", "drip", "flood", "cut", "drop"] = ""
    """never: no answer; drip: a byte every 50 ms without end; flood: bytes without end, as fast as they are taken;
    cut: the connection closes half-way through the body; drop: it closes at once."""
    model: str | None = None
    """Only for questions to this model,"""
    contains: str | None = None
    """and only where the question holds this text."""
    times: int = 1
    """So often; the last answer that fits a question is given again and again."""

    def fits(self, request: Request) -> bool:
        asked = json.dumps(request.get("messages"), ensure_ascii=False)
        wanted = json.dumps(self.contains or "", ensure_ascii=False)[1:-1]
        return self.model in (None, request.get("model")) and wanted in asked

    def payload(self, request: Request) -> bytes:
        """The body as sent when nothing cuts it."""
        if self.body is not None:
            return self.body
        if self.status != 200:
            error = {"message": self.error, "type": "error", "param": None, "code": self.code}
            return json.dumps({"error": error}).encode()
        return json.dumps(self._completion(request)).encode()

    def _completion(self, request: Request) -> dict[str, Any]:
        message = {"role": "assistant", "content": self.text, "refusal": self.refusal}
        if self.reasoning is not None:
            message["reasoning_content"] = self.reasoning
        choice = {"index": 0, "finish_reason": self.finish, "message": message}
        body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": request.get("model")}
        usage = self._counted(request) if self.usage == "counted" else self.usage
        return {**body, "choices": [choice]} | ({"usage": usage} if usage != "none" else {})

    def _counted(self, request: Request) -> dict[str, Any]:
        asked, said = prompt_tokens(request), tokens((self.text or "") + (self.reasoning or ""))
        return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


NEVER = Answer(fault="never")
DRIP = Answer(fault="drip")

Simple = str | tuple[int, str] | bytes | Answer
Reply = Simple | Callable[[Request], Simple]
"""The text of a completion, a status with a message, a raw body, an Answer, or a function that makes one of these."""


def answer_of(reply: Simple) -> Answer:
    match reply:
        case Answer():
            return reply
        case str():
            return Answer(text=reply)
        case bytes():
            return Answer(body=reply)
        case (status, message):
            return Answer(status=status, error=message)
    raise TypeError(f"no reply: {reply!r}")


def tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def prompt_tokens(request: Request) -> int:
    return sum(tokens(str(message.get("content"))) for message in request.get("messages", ()))
