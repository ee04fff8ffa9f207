"""One question, one answer, for a caller that waits."""

from __future__ import annotations

from typing import Any

from cuda_l1.endpoint.background import Background
from cuda_l1.endpoint.chat import Chat, place_of
from cuda_l1.endpoint.keys import NO_KEY
from cuda_l1.errors import EndpointError


class Endpoint:
    """One model at one address, asked one question at a time."""

    def __init__(self, url: str, model: str | None = None, *, key: str = NO_KEY) -> None:
        """`url` ends where `/chat/completions` would begin. Without `model` the only one that is served there."""
        self._url, self._model, self._key = url, model, key

    @property
    def name(self) -> str:
        """The model and where it is, e.g. `qwen3 at localhost:8000`."""
        return f"{self._model or 'a model'} at {place_of(self._url)}"

    def ask(self, system: str, user: str, *, form: dict[str, Any], within_s: float) -> str:
        """The text of the model's answer.

        `form` is the JSON schema that the answer should have; a server that knows no schemas is asked without it, so
        the caller must check. Raises EndpointError.
        """
        chat = Chat(self._url, self._model, key=self._key, timeout_s=2 * within_s)
        with Background() as background:
            asking = background.submit(chat.ask(system, user, temperature=0, form=form))
            try:
                answer = asking.result(within_s)
            except TimeoutError:
                raise EndpointError(f"no answer within {within_s:.3g} s", lasting=True) from None
            self._model = chat.model
            background.submit(chat.close())
        if not answer.text.strip():
            raise EndpointError("its answer holds no text")
        return answer.text
