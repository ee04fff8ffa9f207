"""Techniques in processes of their own, for collections on several lanes: one process writes for one lane at a time.

    python -m cuda_l1.api.writing_process FD

It answers until the other side hangs up.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection, Pipe

from cuda_l1.api.lanes import Lane
from cuda_l1.api.proposers import make_proposer
from cuda_l1.config import SearchSettings
from cuda_l1.errors import InfrastructureError
from cuda_l1.evaluator.client import started
from cuda_l1.proposers import NotYet, Proposer
from cuda_l1.types import Candidate, Record, Task


class WritingProcess:
    """The techniques that `settings` names. Its process begins with the first question, runs on the cores of `lane`
    where there is one, and ends with `close` or with this process. For one thread, save `close`."""

    name = "techniques"

    def __init__(self, settings: SearchSettings, lane: Lane | None) -> None:
        self.failures: Sequence[str] = ()
        self._settings, self._lane = settings, lane
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    def propose(self, task: Task, history: Sequence[Record], until: float) -> Candidate | NotYet | None:
        """The techniques' next candidate. Raises InfrastructureError where their process dies; the next question has
        another."""
        if self._process is None:
            self._start()
        try:
            self._channel.send((task, list(history), until))
            candidate, self.failures = self._channel.recv()
        except (EOFError, OSError):
            process, self._process = self._process, None
            code = process.wait() if process else None
            raise InfrastructureError(f"{task.name}: the process that writes variants died (exit {code})") from None
        made: Candidate | NotYet | None = candidate
        return made

    def close(self) -> None:
        """Ends the process, whatever it does."""
        self._is_closed = True
        if self._process is not None:
            self._process.kill()

    def _start(self) -> None:
        if self._is_closed:
            raise KeyboardInterrupt
        self._channel, theirs = Pipe()
        self._process = started(__name__, theirs.fileno())
        theirs.close()
        self._channel.send((self._settings, self._lane))


def serve(channel: Connection) -> None:
    """Answers until the other side hangs up."""
    settings, lane = channel.recv()
    if lane is not None:
        os.sched_setaffinity(0, lane)
        os.environ["OMP_NUM_THREADS"] = str(len(lane))
    proposer: Proposer | None = make_proposer(settings.proposers[0], settings)
    assert proposer is not None
    while True:
        try:
            task, history, until = channel.recv()
        except EOFError:
            return
        channel.send((proposer.propose(task, history, until), tuple(proposer.failures)))


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
