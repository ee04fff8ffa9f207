"""As much of HTTP/1.1 as a client of a language model speaks: connections that live on, bodies of a known length."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import responses


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    method: str
    target: str
    """The path, or the whole address where a proxy was asked."""
    headers: Mapping[str, str]
    """Names in small letters."""
    body: bytes

    @property
    def path(self) -> str:
        _, scheme, rest = self.target.partition("://")
        return "/" + rest.partition("/")[2] if scheme else self.target


async def read_request(reader: asyncio.StreamReader) -> Asked | None:
    """The next request of a connection; None: it was closed."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.rstrip().split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(method, target, headers, body)


def head(status: int, headers: Mapping[str, str], length: int | None) -> bytes:
    """Status line and headers; without a length the body ends with the connection."""
    ends = {"Connection": "close"} if length is None else {"Content-Length": str(length)}
    first = f"HTTP/1.1 {status} {responses.get(status, 'Unknown')}"
    lines = [first, *(f"{name}: {value}" for name, value in {**headers, **ends}.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
