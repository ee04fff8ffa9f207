"""An event loop on a thread of its own: requests in flight while the caller does something else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, Self, TypeVar

T = TypeVar("T")

LEAVING_S = 2.0
"""How long cancelled requests get to close their connections."""


class Background:
    """Runs coroutines until it is closed, which cancels those that have not finished."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="endpoint", daemon=True)
        self._thread.start()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Starts it; the future's `cancel` ends it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def close(self) -> None:
        """Cancels what is under way. A thread that does not end in time is left to itself."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cancel)
            self._thread.join(LEAVING_S)

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.close()

    def _cancel(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.create_task(self._leave())

    async def _leave(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=LEAVING_S / 2)
        self._loop.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
