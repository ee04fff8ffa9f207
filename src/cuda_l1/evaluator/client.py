"""`Evaluator`: the door to the parent process, for the command line, Python and training.

    with Evaluator(EvaluatorSettings(device="cpu")) as evaluator:
        evaluation = evaluator.evaluate(task, candidate)

The caller may hold torch, threads and a CUDA context: the parent is a fresh exec'd process, never a fork of it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from cuda_l1 import interruption
from cuda_l1.config import SCREEN, AnyProtocol, EvaluatorSettings
from cuda_l1.errors import InfrastructureError, NoRoomError, OutOfTimeError, TaskError, UsageError
from cuda_l1.evaluator.guest.channel import Channel, ChannelClosed
from cuda_l1.types import Candidate, Environment, Evaluation, Task, TaskAudit, Verification

_ERRORS = {
    "room": NoRoomError,
    "task": TaskError,
    "usage": UsageError,
    "time": OutOfTimeError,
    "infrastructure": InfrastructureError,
}
_CLOSE_S = 5.0


class Evaluator:
    """One parent process on one device. Not thread-safe, save `interrupt`; close it or use it as a context manager."""

    def __init__(self, settings: EvaluatorSettings | None = None) -> None:
        """Start the parent. Raises InfrastructureError when the device or the sandbox rung asked for is not there."""
        self.settings = settings or EvaluatorSettings()
        self._interrupted = False
        self._open()

    def _open(self) -> None:
        self._channel, theirs = Channel.pair()
        self._process = started("cuda_l1.evaluator.serving", theirs.fileno())
        theirs.close()
        self._channel.send({"settings": self.settings.model_dump(mode="json")})
        self.environment = Environment.model_validate(self._receive(None)["environment"])

    def _receive(self, progress: Callable[[str], None] | None) -> dict[str, Any]:
        while True:
            try:
                message, _ = self._channel.receive()
            except ChannelClosed:
                if self._interrupted:
                    raise KeyboardInterrupt from None
                code = self._process.wait()
                self._channel.close()
                raise InfrastructureError(f"the evaluator's parent process died (exit {code}); run it again") from None
            if "error" in message:
                raise _ERRORS[message["error"]["kind"]](message["error"]["message"])
            if "progress" not in message:
                return message
            if progress is not None:
                progress(message["progress"])

    def _request(self, message: dict[str, Any], progress: Callable[[str], None] | None) -> Any:
        interruption.pass_on()
        if self._interrupted:
            raise KeyboardInterrupt
        if self._channel.fileno() < 0:
            self._open()
        try:
            self._send({**message, "secret": _secret().hex()})
            return self._receive(progress)["result"]
        except BaseException as error:
            if not isinstance(error, TaskError | UsageError | OutOfTimeError):
                self.close()  # interrupted in mid-answer: what comes later would be taken for another's reply
            raise

    def _send(self, message: dict[str, Any]) -> None:
        try:
            try:
                self._channel.send(message)
            except ChannelClosed:
                if self._interrupted:
                    raise KeyboardInterrupt from None
                self.close()  # the parent died since its last answer, and nothing was lost with it
                self._open()
                self._channel.send(message)
        except ValueError as error:
            raise UsageError(f"task and candidates are too large to be judged together: {error}") from error

    @property
    def pid(self) -> int:
        """Process id of the parent."""
        return self._process.pid

    def evaluate(
        self,
        task: Task,
        candidate: Candidate,
        *,
        protocol: AnyProtocol = SCREEN,
        baselines: Sequence[Candidate] = (),
        best_of: Sequence[str] = (),
        best_so_far: float | None = None,
        within_s: float | None = None,
        beside_others: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> Evaluation:
        """The verdict on one candidate.

        `baselines`: opponents to time against besides eager, in the same lease. `best_of`: names of the baselines
        that the (last) opponent was best of. `best_so_far`: the task's best speed-up; one beyond it by more than 10 %
        is measured again at once. `within_s`: seconds after which building and checking are given up. `beside_others`:
        where memory or time runs out that other evaluators share, NoRoomError says so, and no second try has the device
        whole. Raises TaskError when the reference itself does not work, OutOfTimeError when it was given up,
        InfrastructureError when the machine fails.
        """
        message = {
            "op": "evaluate",
            "task": _plain(task),
            "candidate": _plain(candidate),
            "protocol": protocol.model_dump(mode="json"),
            "baselines": [_plain(b) for b in baselines],
            "best_of": list(best_of),
            "best_so_far": best_so_far,
            "within_s": within_s,
            "beside_others": beside_others,
        }
        return Evaluation.model_validate(self._request(message, progress))

    def verify(
        self, task: Task, candidate: Candidate, *, progress: Callable[[str], None] | None = None
    ) -> Verification:
        """Whether a candidate is right on a task that it need not have been written for: its own at another size, say.

        The trials of a verdict, without its timing. Raises as `evaluate` does.
        """
        message = {"op": "verify", "task": _plain(task), "candidate": _plain(candidate)}
        return Verification.model_validate(self._request(message, progress))

    def audit(self, task: Task, progress: Callable[[str], None] | None = None) -> TaskAudit:
        """What the judge says of a task: its class and mode, and whether its verdicts mean something."""
        return TaskAudit.model_validate(self._request({"op": "audit", "task": _plain(task)}, progress))

    def footprint(self, task: Task, progress: Callable[[str], None] | None = None) -> int | None:
        """Bytes that one call of the reference holds at most: weights, inputs, outputs and what is between them.

        Found behind the wall on tensors without memory; None where the text needs the values of its tensors.
        """
        found: int | None = self._request({"op": "footprint", "task": _plain(task)}, progress)["peak_bytes"]
        return found

    def interrupt(self) -> None:
        """From another thread: the call in progress raises KeyboardInterrupt, and so does every later one."""
        self._interrupted = True
        self._channel.hang_up()

    def close(self) -> None:
        """End the parent and everything below it. Idempotent; a later call starts afresh."""
        self._channel.close()
        try:
            self._process.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):
            self._channel.close()


def started(module: str, descriptor: int) -> subprocess.Popen[bytes]:
    """A fresh process in a session of its own that runs `module` and is passed one end of a channel."""
    return subprocess.Popen(
        [sys.executable, "-m", module, str(descriptor)],
        pass_fds=[descriptor],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": _python_path(), "PYTHONSAFEPATH": "1"},
    )


def _python_path() -> str:
    """Where this package lies, then what the caller's environment names: never the folder of the caller's script,
    whose files may bear the names of library modules."""
    here = str(Path(__file__).parents[2])
    return os.pathsep.join([here, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])


def _secret() -> bytes:
    """From which follows what a request leaves to chance."""
    return os.urandom(32)


def _plain(value: Task | Candidate) -> dict[str, Any]:
    return value.model_dump(mode="json", exclude={"sha", "id"})
