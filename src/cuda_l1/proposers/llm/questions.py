"""One question under way, and the model that it was put to."""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import dataclass, field

from cuda_l1.config import ModelSettings
from cuda_l1.endpoint import Answer, Background, Chat, key_for, place_of
from cuda_l1.errors import EndpointError
from cuda_l1.proposers.llm.purse import Reserved
from cuda_l1.types import Prompt, Task

MOST_FAULTS = 3
"""A model is not asked again after so many questions in a row that its endpoint did not answer."""
MOST_USELESS = 20
"""Nor after so many replies in a row that held nothing new."""
PATIENCE_S, PAUSE_S = 120.0, 2.0
"""An endpoint that has answered before and cannot be reached is tried again this long, with such pauses: servers are
started anew while a search runs. One that never answered is more likely a wrong address."""


@dataclass
class Asked:
    """A model in a run: its client, and how it fares."""

    settings: ModelSettings
    chat: Chat
    questions: int = 0
    under_way: int = 0
    """Questions without an answer, and answers that were not handed out."""
    faults: int = 0
    useless: int = 0
    has_answered: bool = False
    lost_at: float | None = None
    """Since when it cannot be reached, a `time.monotonic()`."""
    not_before: float = 0.0
    gone: EndpointError | None = None
    """Why it is not asked again."""
    is_exhausted: bool = False
    """Whether that is since it had nothing new to say."""

    @classmethod
    def of(cls, settings: ModelSettings) -> Asked:
        """Raises UsageError for a key file, or a variable, that holds no key."""
        key = key_for(settings.url, file=settings.key_file, variable=settings.key_env)
        return cls(
            settings,
            Chat(settings.url, settings.name, key=key, timeout_s=settings.timeout_s, retries=settings.retries),
        )

    @property
    def place(self) -> str:
        return place_of(self.settings.url)

    @property
    def name(self) -> str:
        """E.g. `qwen3 at localhost:8000`."""
        return f"{self.settings.name} at {self.place}"

    @property
    def is_pausing(self) -> bool:
        """Whether it will be tried again soon."""
        return self.gone is None and time.monotonic() < self.not_before

    @property
    def has_room(self) -> bool:
        return self.gone is None and not self.is_pausing and self.under_way < self.settings.concurrency

    def failed(self, error: EndpointError) -> None:
        """One question had no answer."""
        if self.has_answered and error.kind == "unreachable":
            self._lost(error)
            return
        self.faults += 1
        if error.lasting or self.faults >= MOST_FAULTS:
            self.gone = error

    def _lost(self, error: EndpointError) -> None:
        now = time.monotonic()
        self.lost_at = now if self.lost_at is None else self.lost_at
        self.not_before = now + PAUSE_S
        if now - self.lost_at >= PATIENCE_S:
            self.gone = error

    def answered(self, *, is_new: bool) -> None:
        """One question had an answer, with a candidate that was not there before or without."""
        self.faults, self.has_answered, self.lost_at = 0, True, None
        self.useless = 0 if is_new else self.useless + 1
        if self.useless >= MOST_USELESS:
            self.is_exhausted = True
            self.gone = EndpointError(f"{MOST_USELESS} replies in a row held nothing new")


@dataclass
class Question:
    """What one model was asked about one task."""

    task: Task
    asked: Asked
    prompt: Prompt
    number: int
    reserved: Reserved
    repairs: str | None = None
    """Id of the reply that it asks to repair."""
    shown: tuple[str, ...] = ()
    """Ids of the candidates that the prompt shows."""
    future: Future[tuple[Answer, float]] = field(default_factory=Future)

    def put(self, background: Background) -> None:
        """Sends it off."""
        self.future = background.submit(self._timed())

    async def _timed(self) -> tuple[Answer, float]:
        began = time.monotonic()
        settings = self.asked.settings
        answer = await self.asked.chat.ask(
            self.prompt.system,
            self.prompt.user,
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
        )
        return answer, time.monotonic() - began
