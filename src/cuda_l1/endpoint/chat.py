"""One model at one address, asked through the `openai` package as often at a time as the caller likes."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cuda_l1.endpoint.bounded import bounded_client
from cuda_l1.endpoint.completion import Answer, answer_of
from cuda_l1.endpoint.faults import explained, one_line
from cuda_l1.errors import EndpointError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

MOST_BYTES = 16 << 20
"""A longer answer is none: the longest that models write are a hundredth of that."""
CONNECT_S = 10.0
CUT_ATTEMPTS = 3
"""How often a question is asked whose answer breaks off on the way."""


class Chat:
    """One model at one address. Use it in one event loop only."""

    def __init__(self, url: str, model: str | None, *, key: str, timeout_s: float, retries: int = 2) -> None:
        """`url` ends where `/chat/completions` would begin. Without `model` the only one that is served there.

        `timeout_s` bounds a question, further attempts and the pauses between them included.
        """
        self.model = model
        self._url, self._key = url, key
        self._timeout_s, self._retries = timeout_s, retries
        self._opened: AsyncOpenAI | None = None
        self._limit_name = "max_tokens"

    async def ask(
        self,
        system: str,
        user: str,
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        form: dict[str, Any] | None = None,
    ) -> Answer:
        """The model's answer. None of the options is sent that is None; `form` is a JSON schema for the answer.

        A server that knows no schemas is asked without. Raises EndpointError in every other case.
        """
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        arguments: dict[str, Any] = {"messages": messages}
        if temperature is not None:
            arguments["temperature"] = temperature
        if form is not None:
            schema = {"type": "json_schema", "json_schema": {"name": "answer", "schema": form}}
            arguments["response_format"] = schema
        return answer_of(await self._bounded(self._posted(arguments, max_tokens)), self._key)

    async def models(self) -> list[str]:
        """Names of the models that are served there. Raises EndpointError, also where it does not list them."""
        body = await self._bounded(self._listed())
        try:
            return [str(model["id"]) for model in json.loads(body)["data"]]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise EndpointError("it does not list its models; name one", lasting=True) from None

    async def close(self) -> None:
        """Closes its connections."""
        if self._opened is not None:
            await self._opened.close()

    @property
    def _client(self) -> AsyncOpenAI:
        if self._opened is None:
            from openai import AsyncOpenAI, Timeout

            times = Timeout(self._timeout_s, connect=min(CONNECT_S, self._timeout_s))
            self._opened = AsyncOpenAI(
                base_url=self._url,
                api_key=self._key,
                timeout=times,
                max_retries=self._retries,
                http_client=bounded_client(),
            )
        return self._opened

    async def _bounded(self, asking: Any) -> bytes:
        """The package's timeouts bound each wait and not the whole."""
        try:
            async with asyncio.timeout(self._timeout_s):
                body: bytes = await asking
                return body
        except TimeoutError:
            raise EndpointError(f"no answer within {self._timeout_s:.3g} s") from None
        except Exception as error:  # noqa: BLE001 - foreign code and a foreign server: told in one line, without the key
            raise explained(error, self._key) from None

    async def _listed(self) -> bytes:
        async with self._client.models.with_streaming_response.list() as response:
            return await _whole(response)

    async def _posted(self, arguments: dict[str, Any], max_tokens: int | None) -> bytes:
        import openai

        if self.model is None:
            self.model = _only(await self.models())
        limit = {} if max_tokens is None else {self._limit_name: max_tokens}
        try:
            return await self._post({**arguments, **limit})
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            if limit and self._limit_name == "max_tokens" and "max_completion_tokens" in str(error):
                self._limit_name = "max_completion_tokens"  # what some models of hosted services want instead
                return await self._posted(arguments, max_tokens)
            if "response_format" not in arguments:
                raise
        return await self._post({"messages": arguments["messages"], **limit})

    async def _post(self, arguments: dict[str, Any]) -> bytes:
        create = self._client.chat.completions.with_streaming_response.create
        for attempt in range(1, CUT_ATTEMPTS + 1):
            async with create(model=str(self.model), **arguments) as response:
                try:
                    return await _whole(response)
                except EndpointError:
                    raise
                except Exception:  # the package no longer tries again by itself
                    if attempt == CUT_ATTEMPTS:
                        raise
        raise AssertionError


async def _whole(response: Any) -> bytes:
    """The body, as long as it ends: a server that never stops would fill the memory."""
    body = bytearray()
    async for part in response.iter_bytes():
        body += part
        if len(body) > MOST_BYTES:
            raise EndpointError(f"its answer is longer than {MOST_BYTES >> 20} MiB", lasting=True)
    return bytes(body)


def _only(names: list[str]) -> str:
    if len(names) != 1:
        known = one_line(", ".join(names), 200) or "none"
        raise EndpointError(f"it serves {len(names)} models, name one ({known})", lasting=True)
    return names[0]


def place_of(url: str) -> str:
    """Host and port of an endpoint, e.g. `localhost:8000`."""
    return urlsplit(url).netloc.rpartition("@")[2]
