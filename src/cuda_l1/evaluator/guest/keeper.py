"""The keeper: one small process per guest that starts it, reaps what it leaves behind and reports how it ended.

As a subreaper it inherits every orphan of its guest, so nothing that a guest starts gets away: when the guest ends,
the parent asks, or the parent or the template dies, the keeper kills everything below it and then itself ends. The
guest cannot signal or trace it from rung R1 on. It speaks on `control`:

    out  {"event": "spawned", "pid", "keeper", "uid"}     the guest is inside its sandbox
         {"event": "refused", "reason"}                   the sandbox could not be entered
         {"event": "exited", "code", "signal", "max_rss_bytes", "orphaned", "crowded"}    orphaned: the template died;
                                                          crowded: it was refused a process
    in   {"op": "kill"}
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
from types import ModuleType
from typing import Any, NoReturn

from . import group, life, sandbox
from .channel import Channel, ChannelClosed, ProtocolError
from .forks import Forks
from .kernel import die_with_parent, set_subreaper
from .log import CappedLog

_STATUS_BYTES = _OUTPUT_BYTES = 1 << 16
_REAP_S, _REAP_LONGEST_S = 0.0005, 0.1


def keep(order: dict[str, Any], fds: list[int], roles: dict[str, ModuleType]) -> NoReturn:
    """Start the guest that `order` describes and stay until nothing of it is left. `fds`: control, channel, log, ..."""
    template = os.getppid()
    os.setsid()
    control = Channel.from_fd(fds[0])
    woken = _wake_on_signals()
    set_subreaper()
    die_with_parent(template, signal.SIGTERM)
    close_all_but({0, 1, 2, *fds, *woken})
    try:
        sandbox.prepare(order["sandbox"])
        status, output = [end.detach() for end in socket.socketpair()], os.pipe()
        guest = os.fork()
    except OSError as error:
        control.send({"event": "refused", "reason": str(error)})
        os._exit(1)
    if guest == 0:
        life.live(order, fds[1], output[1], status[1], fds[3:], roles)
    for fd in (fds[1], *fds[3:], status[1], output[1]):
        os.close(fd)
    _Keeper(control, guest, status[0], woken[0], output[0], CappedLog(fds[2]), order["processes"]).run()
    os._exit(0)


class _Keeper:
    """The loop of one keeper: orders, what the guest says of its start, its output, its new processes, and signals."""

    def __init__(
        self, control: Channel, guest: int, status: int, signals: int, output: int, log: CappedLog, processes: int
    ) -> None:
        self.control, self.guest, self.log, self.processes = control, guest, log, processes
        self.status, self.signals, self.output = status, signals, output
        self.on_ready = {
            control.fileno(): self._on_order,
            status: self._read_status,
            signals: self._on_signals,
            output: self._drain,
        }
        self.poller = select.poll()
        for fd in self.on_ready:
            self.poller.register(fd, select.POLLIN)
        os.set_blocking(output, False)
        self.forks: Forks | None = None
        self.max_rss_bytes = 0
        self.orphaned = False
        self.exit: int | None = None

    def run(self) -> None:
        while self.exit is None:
            for fd, events in self.poller.poll():
                if self.forks and fd == self.forks.descriptor and not events & select.POLLIN:
                    self.poller.unregister(fd)  # none is left that could ask
                else:
                    self.on_ready[fd]()
        self._finish()
        while self._drain():
            pass
        code = os.waitstatus_to_exitcode(self.exit)
        self._tell(
            {
                "event": "exited",
                "code": max(code, 0) if code >= 0 else None,
                "signal": -code if code < 0 else None,
                "max_rss_bytes": self.max_rss_bytes,
                "orphaned": self.orphaned,
                "crowded": bool(self.forks and self.forks.refused),
            }
        )

    def _read_status(self) -> None:
        with socket.socket(fileno=self.status) as end:
            text, descriptors, _, _ = socket.recv_fds(end, _STATUS_BYTES, 1)
            self.poller.unregister(self.status)
        for descriptor in descriptors:
            self.forks = Forks(descriptor, os.getpid(), self.processes)
            self.on_ready[descriptor] = self.forks.answer
            self.poller.register(descriptor, select.POLLIN)
        if text:
            status = json.loads(text)
            event = {"event": "refused"} if "reason" in status else {"event": "spawned", "pid": self.guest}
            self._tell(event | {"keeper": os.getpid()} | status)

    def _drain(self) -> bool:
        """Move some of the guest's output into the log; False when there is none now."""
        try:
            data = os.read(self.output, _OUTPUT_BYTES)
        except BlockingIOError:
            return False
        if data:
            self.log.append(data)
        elif self.exit is None:  # every writer has closed its end
            self.poller.unregister(self.output)
        return bool(data)

    def _on_signals(self) -> None:
        if signal.SIGTERM in os.read(self.signals, 4096):
            self.orphaned = True
            group.kill(os.getpid())
        self._reap()

    def _on_order(self) -> None:
        """The only order is to kill; a parent that is gone means the same."""
        with contextlib.suppress(ChannelClosed, ProtocolError):
            self.control.receive(0)
        self.poller.unregister(self.control.fileno())
        if self.exit is None:
            group.send(self.guest, signal.SIGKILL)  # at R2 the kernel ends with it all that it has started
        group.kill(os.getpid())

    def _reap(self) -> bool:
        """Collect everything that has ended; False when no child is left at all."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self.max_rss_bytes = max(self.max_rss_bytes, usage.ru_maxrss * 1024)
            if pid == self.guest:
                self.exit = status

    def _finish(self) -> None:
        """Kill and collect whatever outlived the guest."""
        pause = _REAP_S
        while self._reap():
            group.kill(os.getpid())
            self._drain()
            time.sleep(pause)
            pause = min(2 * pause, _REAP_LONGEST_S)  # one that a driver holds may stay for long

    def _tell(self, event: dict[str, Any]) -> None:
        with contextlib.suppress(ChannelClosed, TimeoutError):
            self.control.send(event)


def _wake_on_signals() -> tuple[int, int]:
    """A pipe that gets a byte for each SIGCHLD and SIGTERM."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, _do_nothing)
    return read, write


def _do_nothing(number: int, frame: object) -> None:
    """A handler of our own, so that the signal arrives at the wake-up pipe."""


def close_all_but(kept: set[int]) -> None:
    """Close every descriptor of this process that is not in `kept`."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            with contextlib.suppress(OSError):  # the listing's own descriptor is gone by now
                os.close(int(name))
