"""A guest from the parent's side: wait, stop, kill, watch; and the one wait loop. No torch, no thread, no timer."""

from __future__ import annotations

import contextlib
import select
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

from cuda_l1.config import Limits
from cuda_l1.errors import InfrastructureError
from cuda_l1.evaluator.guest import group
from cuda_l1.evaluator.guest.channel import Channel, ChannelClosed
from cuda_l1.evaluator.guest.log import CappedLog
from cuda_l1.evaluator.watch import ExitReason, Watcher
from cuda_l1.evaluator.work_folders import remove_tree

_LOOK_S = 0.05
_KILL_S = 8.0
_START_S = 60.0


class Unkillable(InfrastructureError):
    """A process that stays when it is killed: the kernel or a driver holds it."""


class Exit(NamedTuple):
    """How a guest ended."""

    code: int | None
    """Exit code, or None when a signal ended it."""
    signal: int | None
    max_rss_bytes: int
    """Resident memory of its largest process, libraries shared with the template included."""
    reason: ExitReason | None = None
    """Why we killed it; None when it ended by itself."""
    oom: bool = False
    """It was ended for its memory, by us or by the kernel."""


class Home(Protocol):
    """What a guest needs of the template that it was forked from."""

    def check(self) -> None:
        """Raise `InfrastructureError` when the template has died."""

    def new_folder(self, role: str) -> Path:
        """A fresh work directory."""

    def forget(self, guest: Guest) -> None:
        """A closed guest needs no closing."""


class Guest:
    """One forked process and everything that it starts."""

    def __init__(
        self, template: Home, role: str, channel: Channel | None, work_dir: Path | None, limits: Limits
    ) -> None:
        self.template, self.role, self.limits = template, role, limits
        self._channel = channel
        self._owns_work_dir = work_dir is None
        self.work_dir = work_dir or template.new_folder(role)
        (self.work_dir / "tmp").mkdir(exist_ok=True)
        self.log = CappedLog.create(limits.log_bytes)
        self.exit: Exit | None = None
        self.uid: int | None = None
        self._control: Channel | None = None
        self._pid: int | None = None
        self._keeper: int | None = None
        self._watcher: Watcher | None = None
        self._reason: ExitReason | None = None
        self._stuck = False
        self._refusal: str | None = None
        self._next_look = 0.0
        self._kernel_kills = _kernel_oom_kills()
        self._used_at_stop: dict[int, float] | None = None
        self._turns_at_stop: dict[int, group.Turns] = {}
        self._stopped_at = 0.0
        self._stolen_s: list[float] = []

    def attach(self, control: Channel) -> None:
        """The line to this guest's keeper."""
        self._control = control

    @property
    def channel(self) -> Channel:
        """The parent's end; a guest whose pair the caller made has none (`ValueError`)."""
        if self._channel is None:
            raise ValueError(f"the {self.role}'s channel was given to somebody else")
        return self._channel

    @property
    def control(self) -> Channel:
        """The line to the keeper, readable when the guest starts or ends."""
        assert self._control is not None
        return self._control

    @property
    def pid(self) -> int:
        """Process id of the guest in the parent's namespace; waits until it has started, and raises as that does."""
        return self.wait_until_started()

    def wait_until_started(self) -> int:
        """Waits until the guest is inside its sandbox; its process id.

        Raises `InfrastructureError` when the sandbox refused or the guest was lost before.
        """
        deadline = time.monotonic() + _START_S
        while self._pid is None and self.exit is None:
            if not wait([], [self], deadline, wake_on_start=True):
                raise InfrastructureError(f"the {self.role} did not start within {_START_S:.0f} s")
        if self._pid is None:
            raise InfrastructureError(f"the {self.role} could not be confined: {self._refusal or self.log_tail(300)}")
        return self._pid

    @property
    def has_started(self) -> bool:
        """Whether it is known to be inside its sandbox."""
        return self._pid is not None

    def poll(self) -> Exit | None:
        """Take the keeper's reports and let the watcher look, at most every 50 ms; the exit once there is one."""
        self._take_reports()
        now = time.monotonic()
        if self.exit is None and self._watcher and now >= self._next_look:
            self._next_look = now + _LOOK_S
            reason = self._watcher.look()
            if reason:
                self._order_kill(reason)
        return self.exit

    def wait(self, timeout: float | None = None) -> Exit:
        """Wait until it has ended, watching its limits; raises `TimeoutError`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.exit is None:
            if not wait([], [self], deadline) and self.exit is None:
                raise TimeoutError(f"the {self.role} still runs after {timeout} s")
        return self.exit

    def dismiss(self) -> None:
        """Have it ended, without waiting for that: on a GPU it takes the driver a while. `kill` waits."""
        if self.exit is None:
            self._order_kill("stopped")

    def kill(self, reason: ExitReason = "stopped") -> Exit:
        """End it and everything that it started; returns how it ended. Raises `Unkillable` when it cannot."""
        if self.exit is None:
            self._order_kill(reason)
            try:
                return self.wait(0.0 if self._stuck else _KILL_S)
            except TimeoutError:
                self._stuck = True
                raise Unkillable(f"the {self.role} cannot be killed (a hung driver?)") from None
        return self.exit

    def stop(self) -> None:
        """SIGSTOP all of it and wait until nothing of it runs. Raises `InfrastructureError` when it goes on."""
        self.pid  # noqa: B018 - waits for the start
        if self._keeper and not group.stop(self._keeper):
            raise InfrastructureError(f"the {self.role} cannot be stopped (a hung driver?)")
        self._stolen_s = self.stolen_s()
        if self._keeper:
            self._used_at_stop = group.processor_s_of_each(self._keeper)
            self._turns_at_stop, self._stopped_at = group.turns_of_each(self._keeper), time.monotonic()

    def resume(self, *, is_held_against: bool = True) -> None:
        """SIGCONT all of it. `is_held_against`: what it has used while it was stopped counts among `stolen_s`."""
        if is_held_against:
            self._stolen_s = self.stolen_s()
        self._used_at_stop = None
        if self._keeper:
            group.resume(self._keeper)

    def stolen_s(self) -> list[float]:
        """Seconds of processor time that it may have used each time that it was stopped: SIGCONT can come from a timer
        of its own. Where anything of it has run, or is gone, all of that time: whom it started may have worked, and
        ended."""
        if self._used_at_stop is None or not self._keeper:
            return self._stolen_s
        now = group.processor_s_of_each(self._keeper)
        used_s = sum(max(0.0, s - self._used_at_stop.get(pid, 0.0)) for pid, s in now.items())
        turns, before = group.turns_of_each(self._keeper), self._turns_at_stop
        if turns and any(pid not in turns or turns[pid].has_run_since(then) for pid, then in before.items()):
            used_s = max(used_s, time.monotonic() - self._stopped_at)
        return [*self._stolen_s, used_s]

    def processor_s(self) -> float:
        """Seconds of processor time that all of it has used."""
        return group.processor_s(self._keeper) if self._keeper else 0.0

    def threads(self) -> int:
        """How many threads live in it, those of its child processes among them."""
        return group.threads(self._keeper) if self._keeper else 0

    def log_tail(self, tail_bytes: int | None = None) -> str:
        """What it printed, head and tail within the log's cap; the last `tail_bytes` of that when given."""
        return self.log.text(tail_bytes)

    def close(self) -> None:
        """Kill it if need be, close its channel and log, and remove its own work directory. Idempotent."""
        if self._control and self._control.fileno() >= 0:
            with contextlib.suppress(InfrastructureError):
                self.kill()
            self._control.close()
        if self._channel:
            self._channel.close()
        self.log.close()
        if self._owns_work_dir:
            remove_tree(self.work_dir)
        self.template.forget(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def peak_bytes(self) -> int:
        """Most memory that the watcher saw all its processes hold together; 0 when it never looked."""
        return self._watcher.peak_bytes if self._watcher else 0

    def _order_kill(self, reason: ExitReason) -> None:
        if self._reason:
            return
        self._reason = reason
        with contextlib.suppress(ChannelClosed, TimeoutError):
            self.control.send({"op": "kill"}, timeout=1.0)

    def _take_reports(self) -> None:
        while self.exit is None:
            try:
                report, _ = self.control.receive(0)
            except TimeoutError:
                return
            except ChannelClosed:
                self._lost()
                return
            self._take(report)

    def _take(self, report: dict[str, Any]) -> None:
        match report["event"]:
            case "spawned":
                self._pid, self._keeper, self.uid = report["pid"], report["keeper"], report["uid"]
                self._watcher = Watcher(report["keeper"], self.work_dir, self.limits)
            case "refused":
                self._refusal = report["reason"]
            case "exited" if report["orphaned"]:
                self.template.check()
                raise InfrastructureError(f"the {self.role} was ended with its fork template")
            case "exited":
                killed = report["signal"] == signal.SIGKILL
                reason = self._reason if killed else None  # it may have ended before our order reached it
                if not reason and report["crowded"] and report["code"] != 0:
                    reason = "processes"  # it has died of what its keeper refused, before anybody looked
                by_kernel = killed and reason is None and _kernel_oom_kills() > self._kernel_kills
                self.exit = Exit(
                    report["code"], report["signal"], report["max_rss_bytes"], reason, reason == "memory" or by_kernel
                )

    def _lost(self) -> None:
        """The keeper died without a report: with its template, or by a hand from outside."""
        self.template.check()
        if self._refusal:
            self.exit = Exit(1, None, 0, self._reason)
            return
        raise InfrastructureError(f"the keeper of the {self.role} is gone; something outside killed it")


class Ready(NamedTuple):
    """What ended a `wait`: channels with a message (or closed), and guests that have ended. Falsy: the deadline."""

    channels: tuple[Channel, ...] = ()
    exited: tuple[Guest, ...] = ()
    started: tuple[Guest, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.channels or self.exited or self.started)


def wait(
    channels: Sequence[Channel],
    guests: Sequence[Guest],
    deadline: float | None = None,
    *,
    look_s: float = _LOOK_S,
    wake_on_start: bool = False,
) -> Ready:
    """Wait until a channel has something, a guest has ended, or `deadline` (of `time.monotonic`) has passed.

    Meanwhile every guest's limits are watched each `look_s` seconds; a guest beyond one is killed and then shows up in
    `exited` with the reason. Raises `InfrastructureError` when the template or a keeper is gone.
    """
    while True:
        watched = {channel.fileno(): channel for channel in channels}
        controls = {guest.control.fileno(): guest for guest in guests if guest.exit is None}
        left = look_s if deadline is None else min(look_s, deadline - time.monotonic())
        ready_fds = _select((*watched, *controls), max(left, 0.0))
        was_started = {guest for guest in guests if guest.has_started}
        for guest in guests:
            guest.poll()
        ready = Ready(
            tuple(watched[fd] for fd in ready_fds if fd in watched),
            tuple(guest for guest in guests if guest.exit is not None),
            tuple(guest for guest in guests if guest.has_started and guest not in was_started) if wake_on_start else (),
        )
        if ready or (deadline is not None and time.monotonic() >= deadline):
            return ready


def _select(fds: Sequence[int], timeout_s: float) -> list[int]:
    poller = select.poll()
    for fd in fds:
        poller.register(fd, select.POLLIN)
    return [fd for fd, _ in poller.poll(timeout_s * 1000)]


def _kernel_oom_kills() -> int:
    """How often the kernel has killed a process for memory since the machine started; 0 where it does not say."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0
