"""A guest's first and last moments: from a fork of the template to a confined process that runs its role."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import socket
import sys
import tempfile
import traceback
from types import ModuleType
from typing import Any, NoReturn

from . import sandbox
from .channel import Channel
from .kernel import die_with_parent, set_name

_OPEN_FILES = 4096


def live(
    order: dict[str, Any], channel: int, output: int, status: int, extra: list[int], roles: dict[str, ModuleType]
) -> NoReturn:
    """Confine this process as `order` says, report on the socket `status`, run the role and end.

    `channel`, `output` (both standard streams) and `extra` are the descriptors that the role keeps. The exit code is 0
    when the role returned, 1 when it raised (the traceback is in the output).
    """
    keeper = os.getppid()
    try:
        _detach(order["role"], output, {channel, status, *extra})
        memory = _open_own_memory() if order["role"] == "runner" else None
        _set_environment(order["environment"])
        os.sched_setaffinity(0, order["lane"])
        _set_limits(order["file_bytes"])
        report = sandbox.enter(order["sandbox"])
        os.chdir(order["work_dir"])
        die_with_parent(keeper, signal.SIGKILL)  # last: a change of credentials clears it
        module = roles[order["role"]]
    except BaseException as error:  # noqa: BLE001 - whatever it was, the keeper must hear why no guest came to be
        traceback.print_exc()
        _say(status, {"reason": f"{type(error).__name__}: {error}"})
        os._exit(1)
    _say(status, report, report.pop("forks"))
    _run(module, Channel.from_fd(channel), {**order["spec"], "fds": extra, "memory": memory})


def _open_own_memory() -> int:
    """A descriptor of this process's memory, for the judge (`glimpse`); before there is a wall or a candidate."""
    return os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)


def _detach(role: str, output: int, kept: set[int]) -> None:
    """Own session, fresh signal handlers and streams, no descriptor but the guest's own."""
    from .keeper import close_all_but

    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream, source in enumerate((nothing, output, output)):
        os.dup2(source, stream)
    close_all_but({0, 1, 2, *kept})
    sys.stdout = open(1, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    set_name(f"cuda-l1-{role}")


def _set_environment(environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # computed anew from TMPDIR


def _set_limits(file_bytes: int) -> None:
    """Limits per process, within those that we were started with; memory and processes of the whole group are watched
    from outside."""
    for kind, wanted in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
    ):
        hard = resource.getrlimit(kind)[1]
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (limit, limit))
    with open("/proc/self/oom_score_adj", "w") as file:  # short of memory, the kernel shall take the guest
        file.write("1000")


def _say(status: int, report: dict[str, Any], forks: int | None = None) -> None:
    """`forks`: a descriptor that the keeper alone holds from here on."""
    with socket.socket(fileno=status) as end:
        socket.send_fds(end, [json.dumps(report).encode()], [] if forks is None else [forks])
    if forks is not None:
        os.close(forks)


def _run(module: ModuleType, channel: Channel, spec: dict[str, Any]) -> NoReturn:
    """Run the role and leave without the interpreter's shutdown, which would run foreign exit handlers."""
    flush_all = ctypes.CDLL(None).fflush
    code = 0
    try:
        module.main(channel, spec)
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else int(leave.code is not None)
    except BaseException:  # noqa: BLE001 - the boundary to foreign code: the exit code and the log carry it
        traceback.print_exc()
        code = 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):  # foreign code may have closed or replaced it
                continue
        flush_all(None)
        os._exit(code & 0xFF)
