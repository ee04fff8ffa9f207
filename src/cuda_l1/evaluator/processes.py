"""Guests from the parent's side: start, wait, stop, kill, watch. No torch here, no thread, no timer.

template = Template.start(environment, rung="auto", lane=(0, 1))
guest = template.spawn("runner", {"source": ...})
ready = wait([guest.channel], [guest], deadline=time.monotonic() + 5)
exit = guest.kill("deadline")
template.close()
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from cuda_l1.config import Limits
from cuda_l1.errors import InfrastructureError
from cuda_l1.evaluator.environment import work_environment
from cuda_l1.evaluator.guest import group, probe
from cuda_l1.evaluator.guest.channel import Channel, ChannelClosed, ProtocolError
from cuda_l1.evaluator.guest.log import CappedLog
from cuda_l1.evaluator.guest.template import BOOT
from cuda_l1.evaluator.watch import ExitReason, Watcher

MOUNTED_WORK = "/tmp/cuda-l1-work"
"""Where a guest sees its work directory when it has a mount namespace of its own (R2)."""

_LOOK_S = 0.05
_KILL_S = 20.0
_START_S = 60.0
_LAST_WORDS = 2000
_GUEST_FOLDER = Path(__file__).parent


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


def choose_rung(wanted: str) -> str:
    """`wanted`, or for `auto` the highest rung that works here; `InfrastructureError` when a named one does not."""
    if wanted == "R0":
        return wanted
    highest, refused = probe.highest_rung()
    if wanted == "auto":
        return highest
    if wanted > highest:
        raise InfrastructureError(
            f"this machine refuses sandbox rung {wanted}: {refused[wanted]}; to allow it: {probe.advice(wanted)}"
        )
    return wanted


@dataclass(frozen=True)
class Facts:
    """What the fork template found in its interpreter."""

    torch: str
    cuda: str | None
    python: str


class Template:
    """The process that guests are forked from. Holds torch, so that the parent need not."""

    def __init__(
        self, process: subprocess.Popen[bytes], channel: Channel, output: int, base: Path, settings: _Settings
    ) -> None:
        self._process, self._channel, self._output, self._base = process, channel, output, base
        self._settings = settings
        self._guests: list[Guest] = []
        self.facts = Facts("", None, "")

    @classmethod
    def start(
        cls,
        environment: Mapping[str, str],
        *,
        rung: Literal["auto", "R0", "R1", "R2"] = "auto",
        lane: Sequence[int] | None = None,
        device: Literal["cpu", "cuda"] = "cpu",
        role_folder: Path | None = None,
        preload: Sequence[str] = (),
        startup_s: float = 120.0,
    ) -> Self:
        """Start it and wait until torch is imported.

        `environment` is all that any guest can ever see of ours. Raises `InfrastructureError` when the machine refuses
        a rung asked for by name, or when torch cannot be imported.

        `preload` names modules that it imports besides torch; importing is all that it does with them.
        """
        settings = _Settings(
            choose_rung(rung), tuple(lane or sorted(os.sched_getaffinity(0))), device, dict(environment), role_folder
        )
        ours, theirs = Channel.pair()
        output = os.memfd_create("template", os.MFD_CLOEXEC)  # what it prints: warnings of an import, or a traceback
        command = [sys.executable, "-I", "-c", BOOT, os.fspath(_GUEST_FOLDER), str(theirs.fileno())]
        process = subprocess.Popen(
            [*command, os.fspath(role_folder) if role_folder else "", *preload],
            env=dict(environment),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        base = Path(tempfile.mkdtemp(prefix="cuda-l1-"))
        base.chmod(0o711)  # a guest that gave up the superuser's id must reach its folder, not see the others
        template = cls(process, ours, output, base, settings)
        try:
            ready, _ = ours.receive(startup_s)
        except (ChannelClosed, TimeoutError) as error:
            reason = template.last_line() or str(error)
            template.close()
            raise InfrastructureError(f"the fork template did not start: {reason}") from error
        template.facts = Facts(ready["torch"], ready["cuda"], ready["python"])
        return template

    @property
    def rung(self) -> str:
        """The sandbox rung of its guests: R0, R1 or R2."""
        return self._settings.rung

    @property
    def pid(self) -> int:
        return self._process.pid

    def spawn(
        self,
        role: str,
        spec: Mapping[str, Any],
        *,
        channel: Channel | None = None,
        work_dir: Path | None = None,
        environment: Mapping[str, str] | None = None,
        lane: Sequence[int] | None = None,
        device: Literal["cpu", "cuda"] | None = None,
        read_paths: Sequence[Path | str] = (),
        extra_fds: Sequence[int] = (),
        limits: Limits | None = None,
    ) -> Guest:
        """Fork a guest that runs `role` with `spec` (JSON); returns at once, `guest.pid` waits until it is confined.

        `channel`: the guest's end of a pair that the caller made (closed here), else a pair is made and the parent's
        end is `guest.channel`. `work_dir`: an existing folder to use and leave, else a fresh one that dies with the
        guest. `environment` adds to the template's. `device="cpu"` hides the GPU. `read_paths` may be read besides the
        interpreter and the system. `extra_fds` arrive as `spec["fds"]`. The role finds its work directory, as it sees
        it, in `spec["work_dir"]`.
        """
        self.check()
        chosen = self._settings
        ours, theirs = (None, channel) if channel else Channel.pair()
        guest = Guest(self, role, ours, work_dir, limits or Limits())
        control, far_control = Channel.pair()
        guest.attach(control)
        readable = [*read_paths, *([chosen.role_folder] if chosen.role_folder else [])]
        seen_at = MOUNTED_WORK if chosen.rung == "R2" else os.fspath(guest.work_dir)
        used = device or chosen.device
        order = {
            "op": "spawn",
            "role": role,
            "spec": {**spec, "work_dir": seen_at},
            "environment": {
                **chosen.environment,
                **work_environment(seen_at),
                **({"CUDA_VISIBLE_DEVICES": ""} if used == "cpu" else {}),
                **(environment or {}),
            },
            "lane": list(lane or chosen.lane),
            "work_dir": seen_at,
            # A memfd that carries a tensor is a file too, so one file may be as large as memory.
            "file_bytes": max(guest.limits.work_bytes, guest.limits.memory_bytes),
            "sandbox": {
                "rung": chosen.rung,
                "work_dir": os.fspath(guest.work_dir),
                "mount_at": MOUNTED_WORK,
                "read_paths": [os.fspath(path) for path in readable],
                "device": used,
                "work_bytes": guest.limits.work_bytes,
                "private_paths": [os.fspath(Path.home()), os.getcwd()],
            },
        }
        try:
            self._channel.send(order, [far_control.fileno(), theirs.fileno(), guest.log.fileno(), *extra_fds])
        except (ChannelClosed, TimeoutError) as error:
            guest.close()
            raise InfrastructureError(f"the fork template is gone: {self._last_words()}") from error
        finally:
            far_control.close()
            theirs.close()
        self._guests.append(guest)
        return guest

    def check(self) -> None:
        """Raise `InfrastructureError` when the template has died."""
        code = self._process.poll()
        if code is not None:
            raise InfrastructureError(f"the fork template is gone (exit {code}): {self._last_words()}")

    def close(self) -> None:
        """End the template and every guest; remove what they wrote. Idempotent."""
        for guest in list(self._guests):
            guest.close()
        self._channel.close()
        try:
            self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._output >= 0:
            os.close(self._output)
            self._output = -1
        shutil.rmtree(self._base, ignore_errors=True)

    def last_line(self) -> str:
        """The last thing that the template printed, "" when it printed nothing."""
        size = os.fstat(self._output).st_size
        text = os.pread(self._output, _LAST_WORDS, max(0, size - _LAST_WORDS)).decode(errors="replace")
        return (text.strip().splitlines() or [""])[-1]

    def new_folder(self, role: str) -> Path:
        """A fresh work directory below this template's own folder."""
        return Path(tempfile.mkdtemp(prefix=f"{role}-", dir=self._base))

    def forget(self, guest: Guest) -> None:
        """A closed guest needs no closing."""
        if guest in self._guests:
            self._guests.remove(guest)

    def _last_words(self) -> str:
        with contextlib.suppress(ChannelClosed, TimeoutError, ProtocolError):
            return str(self._channel.receive(0)[0].get("reason"))
        return self.last_line() or "no message"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class _Settings:
    rung: str
    lane: tuple[int, ...]
    device: Literal["cpu", "cuda"]
    environment: dict[str, str]
    role_folder: Path | None


class Guest:
    """One forked process and everything that it starts."""

    def __init__(
        self, template: Template, role: str, channel: Channel | None, work_dir: Path | None, limits: Limits
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
        self._refusal: str | None = None
        self._next_look = 0.0
        self._kernel_kills = _kernel_oom_kills()

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
        """Process id of the guest in the parent's namespace; waits until it is inside its sandbox.

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

    def kill(self, reason: ExitReason = "stopped") -> Exit:
        """End it and everything that it started; returns how it ended. Raises `InfrastructureError` when it cannot."""
        if self.exit is None:
            self._order_kill(reason)
            try:
                return self.wait(_KILL_S)
            except TimeoutError:
                raise InfrastructureError(f"the {self.role} cannot be killed (a hung driver?)") from None
        return self.exit

    def stop(self) -> None:
        """SIGSTOP all of it and wait until nothing of it runs. Raises `InfrastructureError` when it goes on."""
        self.pid  # noqa: B018 - waits for the start
        if self._keeper and not group.stop(self._keeper):
            raise InfrastructureError(f"the {self.role} cannot be stopped (a hung driver?)")

    def resume(self) -> None:
        """SIGCONT all of it."""
        if self._keeper:
            group.resume(self._keeper)

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
            shutil.rmtree(self.work_dir, ignore_errors=True)
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
