"""What the body of an answer says: a chat completion, or in one line what it is instead."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from cuda_l1.endpoint.faults import one_line, reported
from cuda_l1.endpoint.keys import without_key
from cuda_l1.errors import EndpointError

SHOWN = 60
"""Characters of a body that are told where it is no JSON."""
_WORDS = ("error", "message", "detail")
"""Where servers say what is wrong in place of an answer."""
_ADDRESS = "the URL usually ends in /v1"
_NO_CHAT = "the model may be none for chats"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    text: str
    """Without `reasoning_content`, where a server puts what a model thinks aloud."""
    finish_reason: str = ""
    """`stop`, `length` (cut off), `content_filter`, ...; as the server says it."""
    refusal: str = ""
    """The model's words where it refuses through the field that the protocol has for that."""
    tokens_in: int | None = None
    """As the server counts; None where it does not say."""
    tokens_out: int | None = None
    """The same, with what it thought aloud."""
    thought: bool = False
    """Whether it thought aloud in `reasoning_content`, or in a part of its content that is no text."""


def answer_of(body: bytes, key: str) -> Answer:
    """What a body says; a key that it repeats is blotted out, since answers are kept. Raises EndpointError for what is
    no chat completion, which says what it is."""
    parsed = _object(body, key)
    choice = _choice(parsed, key)
    message = choice["message"]
    said = {name: message.get(name) for name in ("content", "refusal", "reasoning_content", "reasoning")}
    usage = parsed.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    spoken, thought = _spoken(said["content"])
    return Answer(
        text=without_key(_text(spoken), key),
        finish_reason=without_key(_text(choice.get("finish_reason")), key),
        refusal=without_key(_text(said["refusal"]), key),
        tokens_in=_count(counts.get("prompt_tokens")),
        tokens_out=_count(counts.get("completion_tokens")),
        thought=bool(said["reasoning_content"] or said["reasoning"] or thought),
    )


def _object(body: bytes, key: str) -> dict[str, Any]:
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        raise _no_completion(_no_json(body, key), _ADDRESS) from None
    if not isinstance(parsed, dict):
        raise _no_completion(f"it is JSON of another form, {_start(body, key)}", _ADDRESS)
    return parsed


def _no_json(body: bytes, key: str) -> str:
    start = body.lstrip()[:100].lower()
    if not start:
        return "it is empty"
    if start.startswith((b"<!doctype html", b"<html")):
        return "it is a web page"
    if start.startswith((b"data:", b"event:")):
        return "it is a stream, which was not asked for"
    return f"it is no JSON, {_start(body, key)}"


def _start(body: bytes, key: str) -> str:
    return f"and begins with `{one_line(without_key(body[: 4 * SHOWN].decode('utf-8', 'replace'), key), SHOWN)}`"


def _choice(parsed: dict[str, Any], key: str) -> dict[str, Any]:
    """The first choice, whose `message` is an object."""
    choices = parsed.get("choices")
    if not choices and (said := next(filter(None, map(parsed.get, _WORDS)), None)):
        raise reported(said, key)
    if "choices" not in parsed:
        raise _no_completion(f"it is an object without `choices` ({_names(parsed, key)})", _ADDRESS)
    if not isinstance(choices, list) or not choices:
        raise _no_completion("`choices` is empty", "the server's log may say why")
    first = choices[0]
    if not isinstance(first, dict):
        raise _no_completion("its first choice is no object", _ADDRESS)
    if not isinstance(first.get("message"), dict):
        raise _no_completion(f"its first choice has no `message` ({_names(first, key)})", _NO_CHAT)
    return first


def _names(found: dict[str, Any], key: str) -> str:
    return f"it has {one_line(without_key(', '.join(found), key), SHOWN) or 'nothing'}"


def _no_completion(what: str, to_do: str) -> EndpointError:
    return EndpointError(f"its answer is no chat completion: {what}; {to_do}")


def _spoken(content: object) -> tuple[object, bool]:
    """A message's content without the parts of another kind than text, as some services hand over thoughts in a list of
    parts, and whether there were any."""
    if not isinstance(content, list):
        return content, False
    parts = [part if isinstance(part, dict) else {} for part in content]
    texts = [part["text"] for part in parts if part.get("type") == "text" and isinstance(part.get("text"), str)]
    return "".join(texts), len(texts) < len(parts)


def _text(value: object) -> str:
    """Text that can be hashed and stored: half a surrogate pair has no UTF-8, a zero byte no place in a database."""
    text = value if isinstance(value, str) else ""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def _count(value: object) -> int | None:
    """A number of tokens that an answer can have; a database has no place for any integer."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31 else None
