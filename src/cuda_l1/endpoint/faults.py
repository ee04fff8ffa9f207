"""What went wrong between us and an endpoint, in one line."""

from __future__ import annotations

from typing import Any, Literal

from cuda_l1.endpoint.keys import NO_KEY, without_key
from cuda_l1.errors import EndpointError

_STATUS = {
    400: "it refuses the question",
    401: "it refuses the key",
    403: "it refuses the key",
    404: "it knows no such address or model; the URL usually ends in /v1",
    407: "the proxy wants a password; put it into HTTPS_PROXY",
    422: "it refuses the question",
    429: "it allows no more questions for now",
}
_LASTING: dict[int, Literal["refused", "unknown"]] = {
    401: "refused",
    403: "refused",
    404: "unknown",
    407: "refused",
}


def explained(error: Exception, key: str) -> EndpointError:
    """What the `openai` package raised, in one line that does not hold the key."""
    import openai

    if isinstance(error, EndpointError):
        return error
    if isinstance(error, openai.APITimeoutError):
        return EndpointError("no answer in time", lasting=True, kind="unreachable")
    if isinstance(error, openai.APIConnectionError):
        why = _why(error.__cause__ or error, key)
        return EndpointError(f"cannot be reached ({why})", lasting=True, kind="unreachable")
    if isinstance(error, openai.APIStatusError):
        code = error.status_code
        said = one_line(without_key(str(_said(error)), key), 200)
        what = "it wants a key, and none was sent" if code == 401 and key == NO_KEY else _STATUS.get(code, "it failed")
        line = f"{what} (HTTP {code}: {said})"
        return EndpointError(line, lasting=code in _LASTING, kind=_LASTING.get(code, ""))
    return EndpointError(f"{type(error).__name__}: {_why(error, key)}")


def reported(error: object, key: str) -> EndpointError:
    """What a server says in place of an answer, with the status of one: some hosted services do."""
    said = (error.get("message") or error.get("code")) if isinstance(error, dict) else error
    return EndpointError(f"it failed ({one_line(without_key(str(said), key), 200)})")


def _why(error: BaseException, key: str) -> str:
    line = one_line(without_key(str(error), key), 200) or type(error).__name__
    if "CERTIFICATE_VERIFY_FAILED" in line:
        line += "; SSL_CERT_FILE may name the file of your own certificate authority"
    return line


def _said(error: Any) -> object:
    """The server's own words, where it has any; `detail` is FastAPI's name for them."""
    body = error.body
    text = (body.get("message") or body.get("detail")) if isinstance(body, dict) else body
    return text or error.response.reason_phrase


def one_line(text: object, characters: int) -> str:
    """A text from elsewhere, fit to be printed: one line, printable characters only, at most so many."""
    words = "".join(c if c.isprintable() else " " for c in str(text)[: 4 * characters]).split()
    line = " ".join(words)
    return line if len(line) <= characters else f"{line[: characters - 3]}..."
