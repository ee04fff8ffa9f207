"""The server itself: one event loop, in a thread of its own in a test."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from llm_server.answers import Answer, Reply, Request
from llm_server.http import Asked, head, read_request
from llm_server.script import Script

GOLDEN = 0.618034
"""Its multiples, less whole numbers, are spread evenly."""


class LlmServer:
    """What it was asked, how many questions it held at a time, and where it is."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[Asked] = []
        """Every question, the refused ones too, in the order in which they came."""
        self.in_flight = 0
        self.most_in_flight = 0
        self.connections = 0
        """Connections opened so far."""
        self.url = ""
        self._held_s, self._changed = 0.0, time.monotonic()

    @property
    def stats(self) -> dict[str, float]:
        """What `/stats` tells: `held_s` sums the seconds for which it held each question, `cpu_s` is this process's."""
        self._count(0)
        told = {"questions": len(self.asked), "connections": self.connections, "most_in_flight": self.most_in_flight}
        return {**told, "at_s": self._changed, "held_s": self._held_s, "cpu_s": time.process_time()}

    def _count(self, more: int) -> None:
        """So many more questions are held from now on."""
        now = time.monotonic()
        self._held_s += self.in_flight * (now - self._changed)
        self._changed = now
        self.in_flight += more
        self.most_in_flight = max(self.most_in_flight, self.in_flight)

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return str(parts.hostname), int(parts.port or 0)

    @property
    def requests(self) -> list[Request]:
        """Bodies of the questions, in order."""
        return [json.loads(asked.body) for asked in self.asked]

    @property
    def headers(self) -> list[Any]:
        return [asked.headers for asked in self.asked]

    def questions(self) -> list[str]:
        """The user's part of each question."""
        return [request["messages"][-1]["content"] for request in self.requests]

    async def start(self, port: int = 0, tls: ssl.SSLContext | None = None) -> asyncio.Server:
        """Listens on 127.0.0.1; port 0 is any free one."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", port, ssl=tls, backlog=1024)
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while (asked := await read_request(reader)) and await self._respond(asked, writer):
                    pass
        finally:
            writer.close()

    async def _respond(self, asked: Asked, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection may live on."""
        if asked.path.endswith("/chat/completions") and asked.method == "POST":
            return await self._question(asked, writer)
        if asked.path.endswith("/models") and asked.method == "GET":
            listed = json.dumps({"object": "list", "data": [{"id": name} for name in self.script.models]})
            return await _send(writer, self._unknown_key(asked) or Answer(body=listed.encode()), {})
        if asked.path == "/stats":
            return await _send(writer, Answer(body=json.dumps(self.stats).encode()), {})
        return await _send(writer, Answer(status=404, error=f"no such address: {asked.path}"), {})

    async def _question(self, asked: Asked, writer: asyncio.StreamWriter) -> bool:
        self.asked.append(asked)
        self._count(1)
        try:
            request = json.loads(asked.body)
            answer = self._unknown_key(asked) or self._answer(request)
            await asyncio.sleep(answer.delay_s + answer.spread_s * (len(self.asked) * GOLDEN % 1))
            return await _send(writer, answer, request)
        finally:
            self._count(-1)

    def _answer(self, request: Request) -> Answer:
        try:
            return self.script.answer(request, in_flight=self.in_flight)
        except Exception as error:  # noqa: BLE001 - a test's own function: the test reads it in what its client says
            return Answer(status=500, error=f"the script failed: {error!r}")

    def _unknown_key(self, asked: Asked) -> Answer | None:
        key = asked.headers.get("authorization", "").removeprefix("Bearer ")
        if not self.script.keys or key in self.script.keys:
            return None
        return Answer(status=401, error=f"Incorrect API key provided: {key}", code="invalid_api_key")


async def _send(writer: asyncio.StreamWriter, answer: Answer, request: Request) -> bool:
    body = answer.payload(request)
    headers = {"Content-Type": answer.content_type, **answer.headers}
    if "retry-after" not in {name.lower() for name in headers}:
        headers["retry-after-ms"] = "1"
    match answer.fault:
        case "never":
            await asyncio.Event().wait()
        case "drip" | "flood":
            await _endless(writer, head(answer.status, headers, None), slowly=answer.fault == "drip")
        case "cut":
            writer.write(head(answer.status, headers, len(body)) + body[: len(body) // 2])
        case "":
            writer.write(head(answer.status, headers, len(body)) + body)
    await writer.drain()
    return not answer.fault


async def _endless(writer: asyncio.StreamWriter, first: bytes, *, slowly: bool) -> None:
    writer.write(first)
    while True:
        writer.write(b" " if slowly else b" " * 65536)
        await writer.drain()
        await asyncio.sleep(0.05 if slowly else 0)


@contextmanager
def serving(*replies: Reply, tls: ssl.SSLContext | None = None, **rules: Any) -> Iterator[LlmServer]:
    """A server with these replies and rules (fields of Script) at `server.url`, until the block ends."""
    server = LlmServer(Script(answers=list(replies) or [Answer()], **rules))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    listening = asyncio.run_coroutine_threadsafe(server.start(tls=tls), loop).result(10)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(_close(listening), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _close(listening: asyncio.Server) -> None:
    listening.close()
    connections = asyncio.all_tasks() - {asyncio.current_task()}
    for task in connections:
        task.cancel()
    await asyncio.gather(*connections, return_exceptions=True)
