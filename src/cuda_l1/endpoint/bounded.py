"""The HTTP client below the `openai` package, which reads the body of a failure to its end, however long it is."""

from __future__ import annotations

from typing import Any

MOST_ERROR_BYTES = 64 << 10
_OF_THE_BODY_SENT = {"content-encoding", "content-length", "transfer-encoding"}


def bounded_client() -> Any:
    """A client as the package makes it, for which the body of a failure ends after its first 64 KiB."""
    from openai import DefaultAsyncHttpxClient

    class Bounded(DefaultAsyncHttpxClient):
        async def send(self, request: Any, **options: Any) -> Any:
            response = await super().send(request, **{**options, "stream": True})
            if response.is_error:
                return await _shortened(response, request)
            if not options.get("stream"):
                await response.aread()
            return response

    return Bounded()


async def _shortened(response: Any, request: Any) -> Any:
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > MOST_ERROR_BYTES:
            break
    await response.aclose()
    headers = [(name, value) for name, value in response.headers.items() if name.lower() not in _OF_THE_BODY_SENT]
    content = bytes(body[:MOST_ERROR_BYTES])
    return type(response)(response.status_code, headers=headers, content=content, request=request)
