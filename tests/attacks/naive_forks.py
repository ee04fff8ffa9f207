"""Starts the naive harness, or forks it from a process that has loaded torch, which takes longer than all that it does.

A fork has standard streams, a folder, an environment and a process group of its own, and ends as any process does. Only
its command line is another one's.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

NAIVE = Path(__file__).with_name("naive.py")
LIMIT_S = 60.0
MOST = 1 << 16
"""Bytes of a message."""


class Ended(NamedTuple):
    """How a harness ended, and all that it and those that it left behind have written."""

    returncode: int
    stdout: str
    stderr: str


def environment(folder: Path | None = None) -> dict[str, str]:
    """Attacks run there without any wall: without this user's environment, at home in a folder of their own."""
    home = {"HOME": str(folder), "TMPDIR": str(folder)} if folder else {}
    return {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"} | home


def started(arguments: Sequence[str], folder: Path) -> Ended:
    """A harness that is started in this folder. Raises TimeoutExpired."""
    command = [sys.executable, str(NAIVE), *arguments]
    told = {"cwd": folder, "env": environment(folder), "timeout": LIMIT_S}
    done = subprocess.run(command, capture_output=True, text=True, **told)
    return Ended(done.returncode, done.stdout, done.stderr)


class NaiveForks:
    """The process that has loaded torch."""

    _fork: int | None = None
    """The latest fork, which leads its group; it is not waited for before that has been killed."""

    def __enter__(self) -> Self:
        self._control, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        self._control.settimeout(LIMIT_S)
        with theirs:
            told = {"stdin": theirs, "env": environment(), "start_new_session": True}
            self._process = subprocess.Popen([sys.executable, __file__], **told)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for group in filter(None, (self._fork, self._process.pid)):  # with all that attacks have left behind
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        self._fork = None
        self._process.wait()
        self._control.close()

    def run(self, arguments: Sequence[str], folder: Path) -> Ended:
        """A fork of it in this folder. Raises TimeoutExpired, or TimeoutError where it has closed its output."""
        request = {"argv": [str(NAIVE), *arguments], "folder": str(folder), "environment": environment(folder)}
        read, write = os.pipe()
        with open(read), (folder / "stderr").open("wb") as errors:
            socket.send_fds(self._control, [json.dumps(request).encode()], [write, errors.fileno()])
            os.close(write)
            try:
                self._fork = json.loads(self._control.recv(MOST))
                out = subprocess.run(["cat"], stdin=read, capture_output=True, timeout=LIMIT_S).stdout
                ended = self._control.recv(MOST)
            except (subprocess.TimeoutExpired, TimeoutError):
                self.__exit__(None, None, None)
                self.__enter__()
                raise
        told = (folder / "stderr").read_text(errors="replace")
        return Ended(json.loads(ended), out.decode(errors="replace"), told)


if __name__ == "__main__":
    importlib.import_module("torch")  # which all forks have then, and none of them waits for
    control, fork = socket.socket(fileno=os.dup(0)), 0
    while True:
        text, given, _, _ = socket.recv_fds(control, MOST, 2)
        if fork:  # nobody reads any more what it has left behind
            os.killpg(fork, signal.SIGKILL)
            os.waitpid(fork, 0)
        if not text:
            sys.exit()
        fork = os.fork()
        if fork == 0:
            break
        os.setpgid(fork, fork)
        for descriptor in given:
            os.close(descriptor)
        control.send(json.dumps(fork).encode())
        ended = os.waitid(os.P_PID, fork, os.WEXITED | os.WNOWAIT)
        control.send(json.dumps(ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status).encode())
    os.setpgid(0, 0)
    control.close()
    for standard, descriptor in enumerate([os.open(os.devnull, os.O_RDONLY), *given]):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    request = json.loads(text)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv, __file__ = request["argv"], str(NAIVE)
    exec(compile(NAIVE.read_bytes(), NAIVE, "exec", dont_inherit=True))  # at the top: an exit goes all the way
