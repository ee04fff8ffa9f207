"""The loop of the parent process: one client, one request at a time.

    python -m cuda_l1.evaluator.serving FD

Serves over a channel: `evaluate`, `verify`, `audit`, `footprint`. It ends when the client does.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import select
import signal
import sys
import tempfile
from types import FrameType
from typing import Any

from cuda_l1.config import EvaluatorSettings
from cuda_l1.errors import CudaL1Error, NoRoomError, OutOfTimeError, TaskError, UsageError, remedy
from cuda_l1.evaluator.guest.channel import Channel, ChannelClosed
from cuda_l1.evaluator.guest.entropy import ENTROPY
from cuda_l1.evaluator.guests import wait
from cuda_l1.evaluator.parent import Parent

OPEN_FILES = 4096
"""At a time, as guests may. The lease of a CPU takes up to four for each of its cores: on the largest machines more
than 1024, the usual limit."""


class Gone(BaseException):
    """The client has hung up, or somebody asks this process to end: nobody waits for an answer."""


def serve(channel: Channel, settings: EvaluatorSettings) -> None:
    """Answer requests until the client hangs up."""
    try:
        parent = Parent(settings)
    except (CudaL1Error, OSError) as error:
        channel.send(_error(error))
        return
    try:
        parent.start()
        channel.send({"environment": parent.environment.model_dump(mode="json")})
        operations = {
            "evaluate": parent.evaluate,
            "verify": parent.verify,
            "audit": parent.audit,
            "footprint": parent.footprint,
        }
        while True:
            message = channel.receive()[0]
            ENTROPY.begin(bytes.fromhex(message["secret"]))
            try:
                reply = {"result": operations[message["op"]](message, lambda text: channel.send({"progress": text}))}
            except (CudaL1Error, OSError) as error:
                reply = _error(error)
            channel.send(reply)
            if not wait([channel], [], 0.0):
                parent.idle()
    except (CudaL1Error, OSError) as error:
        channel.send(_error(error))
    except (ChannelClosed, Gone):
        pass
    finally:
        parent.close()


def _error(error: Exception) -> dict[str, Any]:
    kinds = {NoRoomError: "room", TaskError: "task", UsageError: "usage", OutOfTimeError: "time"}
    kind = next((name for cls, name in kinds.items() if isinstance(error, cls)), "infrastructure")
    return {"error": {"kind": kind, "message": _in_words(error)}}


def _in_words(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{error}: make room in {tempfile.gettempdir()} and the cache, or name others: TMPDIR, XDG_CACHE_HOME"
    return f"{error}{remedy(error)}" if isinstance(error, OSError) else str(error)


def leave_when_gone(channel: Channel) -> None:
    """From now on Gone is raised, once and wherever this process is, when the client hangs up or SIGTERM comes.

    A verdict takes minutes, a client can be killed in the middle of it, and waiting for the lease of a device has no
    other end. The kernel sends SIGIO for each message, too.
    """

    def leave(number: int, frame: FrameType | None) -> None:
        client = select.poll()
        client.register(channel.fileno(), 0)  # hanging up is always told
        if number == signal.SIGTERM or client.poll(0):
            for each in (signal.SIGIO, signal.SIGTERM):
                signal.signal(each, _ignore)  # Python complains where one that has come is SIG_IGN by then
            raise Gone

    for each in (signal.SIGIO, signal.SIGTERM):
        signal.signal(each, leave)
    fcntl.fcntl(channel.fileno(), fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(channel.fileno(), fcntl.F_SETFL, fcntl.fcntl(channel.fileno(), fcntl.F_GETFL) | os.O_ASYNC)


def _ignore(number: int, frame: FrameType | None) -> None:
    pass


def _allow_files(count: int) -> None:
    """Raise the limit of open files to `count`, or as far as it goes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < count:  # there is -1 for none
        resource.setrlimit(resource.RLIMIT_NOFILE, (count if hard < 0 else min(count, hard), hard))


def main() -> None:
    """Entry point of the exec'd process. Ctrl-C is the client's affair: it hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _allow_files(OPEN_FILES)
    channel = Channel.from_fd(int(sys.argv[1]))
    with contextlib.suppress(ChannelClosed, Gone):
        message, _ = channel.receive()
        leave_when_gone(channel)
        serve(channel, EvaluatorSettings.model_validate(message["settings"]))


if __name__ == "__main__":
    main()
