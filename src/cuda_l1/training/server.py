"""A server that writes stage 3's replies (`vllm serve`), may end in the middle of a step, and come back. Without torch.

TRL's client asks it in the main process, between collectives that all processes take part in: were a failure raised
there, the others would wait for what never comes. So it is kept until the call is over, and all hear of it together.
"""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from cuda_l1.archive.faults import one_line
from cuda_l1.errors import InfrastructureError

T = TypeVar("T")
PATIENCE_S = 1800.0
"""For a server that is gone, as long as for a process that does not answer."""
POLL_S = 5.0
SAID_EVERY_S = 60.0
HERE = "http://localhost:8000"
"""TRL's default."""
REPLIES = ("prompt_ids", "completion_ids", "logprobs", "logprob_token_ids")
"""What TRL's client returns lists of."""
_REFUSED, _FAILING = "Request failed: ", "Request failed: 5"
"""How TRL's client says what a server has answered: as texts of a plain Exception."""


class Server:
    """Stands before TRL's client (`VLLMClient`): keeps its failures, and waits for a server that is gone."""

    def __init__(self, url: str | None, say: Callable[[str], None]) -> None:
        """`url` None: TRL's own. `say` hears a line at the beginning of a wait, and every minute."""
        self.url, self._say = (url or HERE).rstrip("/"), say
        self.client: Any = None
        """TRL's, once there is one."""
        self._failure: Exception | None = None
        self._failing_since: float | None = None

    def wait(self) -> None:
        """Until it is healthy. Raises InfrastructureError where it is not within half an hour."""
        self._until(self._check, "")
        self._failing_since = None

    def is_back(self, device: Any) -> bool:
        """Whether the calls since the last time must be made again: one has failed, and the server is there again and
        takes weights from `device`. False where none has failed.

        Raises InfrastructureError half an hour after the first failure in a row, and for what it refuses; what is no
        failure of the server is raised as it was.
        """
        failure, self._failure = self._failure, None
        if failure is None:
            self._failing_since = None
            return False
        if not (isinstance(failure, OSError) or "NCCL" in str(failure) or str(failure).startswith(_FAILING)):
            if str(failure).startswith(_REFUSED):
                raise InfrastructureError(f"the server {self.url} refuses: {one_line(failure):.300}") from failure
            raise failure
        why = f"{one_line(failure):.200}"
        self._say(f"the server {self.url} has failed: {why}")
        time.sleep(POLL_S)
        self._until(lambda: self._join(device), why)
        self._say(f"the server {self.url} is back; what it was asked for is asked again, with new weights")
        return True

    # ── What TRL calls ────────────────────────────────────────────────────────────────────────────

    def update_named_params(self, metadata: Any, named_params: Iterable[Any]) -> None:
        """Sends weights. All are taken from `named_params` in any case, since all processes gather each of them."""
        rest = iter(named_params)
        self._kept(lambda: self.client.update_named_params(metadata, rest), None)
        for _ in rest:
            pass

    def reset_prefix_cache(self) -> None:
        """Forgets what was computed with other weights."""
        self._kept(lambda: self.client.reset_prefix_cache(), None)

    def generate(self, **asked: Any) -> dict[str, list[Any]]:
        """Replies; none after a failure."""
        nothing: dict[str, list[Any]] = {name: [] for name in REPLIES}
        return self._kept(lambda: self.client.generate(**asked), nothing)

    def _kept(self, call: Callable[[], T], otherwise: T) -> T:
        if self._failure is None:
            try:
                return call()
            except Exception as error:  # noqa: BLE001  `is_back` says of what kind it is
                self._failure = error
        return otherwise

    # ── Waiting ───────────────────────────────────────────────────────────────────────────────────

    def _until(self, attempt: Callable[[], None], why: str) -> None:
        """Until an attempt succeeds, in the time that is left; `why` is what has failed before."""
        self._failing_since = began = self._failing_since or time.monotonic()
        said = -SAID_EVERY_S
        while (waited := time.monotonic() - began) <= PATIENCE_S:
            try:
                return attempt()
            except Exception as error:  # noqa: BLE001  HTTP, TRL and NCCL have kinds of their own
                why = f"{one_line(error):.200}"
            if waited - said >= SAID_EVERY_S:
                said = waited
                self._say(f"waits for the server {self.url}, for {PATIENCE_S / 60:.0f} minutes at most ({why})")
            time.sleep(POLL_S)
        raise InfrastructureError(
            f"the server {self.url} has failed for {waited / 60:.0f} minutes ({why}); start it again, and go on with "
            "--resume"
        )

    def _check(self) -> None:
        with urllib.request.urlopen(f"{self.url}/health", timeout=POLL_S):
            pass

    def _join(self, device: Any) -> None:
        """Opens the way for weights anew: a server that was started again is in no group."""
        self._check()
        self.client.close_communicator()
        self.client.init_communicator(device=device)
