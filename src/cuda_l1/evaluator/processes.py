"""The fork template from the parent's side. Holds no torch itself, no thread, no timer.

    template = Template.start(environment, rung="auto", lane=(0, 1))
    guest = template.spawn("runner", {"source": ...})
    ready = wait([guest.channel], [guest], deadline=time.monotonic() + 5)
    guest.kill("deadline").signal
    template.close()

Guests, their exits and the wait loop live in `guests.py`.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from cuda_l1.config import Limits
from cuda_l1.errors import InfrastructureError
from cuda_l1.evaluator.environment import work_environment
from cuda_l1.evaluator.guest import probe
from cuda_l1.evaluator.guest.channel import Channel, ChannelClosed, ProtocolError
from cuda_l1.evaluator.guest.template import BOOT
from cuda_l1.evaluator.guests import Exit, Guest, Ready, wait
from cuda_l1.evaluator.work_folders import WorkFolder

__all__ = ["MOUNTED_WORK", "Exit", "Facts", "Guest", "Ready", "Template", "choose_rung", "wait"]

MOUNTED_WORK = "/tmp/cuda-l1-work"
"""Where a guest sees its work directory when it has a mount namespace of its own (R2)."""

STARTUP_S = 120.0
_LAST_WORDS = 2000
_GUEST_FOLDER = Path(__file__).parent


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
    threads: int
    """How many it has once all is imported; with more than one it forks nothing."""


class Template:
    """The process that guests are forked from. Holds torch, so that the parent need not."""

    def __init__(
        self, process: subprocess.Popen[bytes], channel: Channel, output: int, base: WorkFolder, settings: _Settings
    ) -> None:
        self._process, self._channel, self._output, self._base = process, channel, output, base
        self._settings = settings
        self._guests: list[Guest] = []
        self.facts = Facts("", None, "", 1)

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
        startup_s: float = STARTUP_S,
    ) -> Self:
        """Start it and wait until torch is imported.

        `environment` is all that any guest can ever see of ours. Raises `InfrastructureError` when the machine refuses
        a rung asked for by name, or when torch cannot be imported.

        `preload` names modules that it imports besides torch, and functions in them ("module:function") that it calls
        once, so that what these remember need not be found out by each guest; where one fails, each guest tries anew.
        """
        settings = _Settings(
            choose_rung(rung), tuple(lane or sorted(os.sched_getaffinity(0))), device, dict(environment), role_folder
        )
        base = WorkFolder.create()
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
        template = cls(process, ours, output, base, settings)
        try:
            ready, _ = ours.receive(startup_s)
        except BaseException as error:
            reason = template.last_line() or str(error)
            template.close()
            if isinstance(error, ChannelClosed | TimeoutError):
                raise InfrastructureError(f"the fork template did not start: {reason}") from error
            raise
        template.facts = Facts(ready["torch"], ready["cuda"], ready["python"], ready["threads"])
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
        loopback: bool = False,
    ) -> Guest:
        """Fork a guest that runs `role` with `spec` (JSON); returns at once, `guest.pid` waits until it is confined.

        `channel`: the guest's end of a pair that the caller made (closed here), else a pair is made and the parent's
        end is `guest.channel`. `work_dir`: an existing folder to use and leave, else a fresh one that dies with the
        guest. `environment` adds to the template's. `device="cpu"` hides the GPU. `read_paths` may be read besides the
        interpreter and the system. `extra_fds` arrive as `spec["fds"]`. `loopback`, at R2 only: its processes may
        talk to each other through sockets, and to nobody else. The role finds its work directory, as it sees it, in
        `spec["work_dir"]`.
        """
        self.check()
        ours, theirs = (None, channel) if channel else Channel.pair()
        guest = Guest(self, role, ours, work_dir, limits or Limits())
        control, far_control = Channel.pair()
        guest.attach(control)
        order = self._order(guest, spec, environment or {}, lane, device or self._settings.device, read_paths, loopback)
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

    def _order(
        self,
        guest: Guest,
        spec: Mapping[str, Any],
        environment: Mapping[str, str],
        lane: Sequence[int] | None,
        device: str,
        read_paths: Sequence[Path | str],
        loopback: bool,
    ) -> dict[str, Any]:
        """What the template is told; see `keeper.py`, `life.py` and `sandbox.py` for who reads which part."""
        chosen, limits = self._settings, guest.limits
        seen_at = MOUNTED_WORK if chosen.rung == "R2" else os.fspath(guest.work_dir)
        readable = [*read_paths, *([chosen.role_folder] if chosen.role_folder else [])]
        hidden = {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {}
        return {
            "op": "spawn",
            "role": guest.role,
            "spec": {**spec, "work_dir": seen_at},
            "environment": {**chosen.environment, **work_environment(seen_at), **hidden, **environment},
            "lane": list(lane or chosen.lane),
            "work_dir": seen_at,
            # A memfd that carries a tensor is a file too, so one file may be as large as memory.
            "file_bytes": max(limits.work_bytes, limits.memory_bytes),
            "processes": limits.processes,
            "sandbox": {
                "rung": chosen.rung,
                "work_dir": os.fspath(guest.work_dir),
                "mount_at": MOUNTED_WORK,
                "read_paths": [os.fspath(path) for path in readable],
                "private_paths": _private_paths(),
                "device": device,
                "work_bytes": limits.work_bytes,
                "loopback": loopback,
            },
        }

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
        self._base.remove()

    def last_line(self) -> str:
        """The last thing that the template printed, "" when it printed nothing."""
        size = os.fstat(self._output).st_size
        text = os.pread(self._output, _LAST_WORDS, max(0, size - _LAST_WORDS)).decode(errors="replace")
        return (text.strip().splitlines() or [""])[-1]

    def new_folder(self, role: str) -> Path:
        """A fresh work directory below this template's own folder."""
        return Path(tempfile.mkdtemp(prefix=f"{role}-", dir=self._base.path))

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


def _private_paths() -> list[str]:
    """Folders that no guest may read as a whole."""
    paths = []
    with contextlib.suppress(RuntimeError):  # a user may have no home
        paths.append(os.fspath(Path.home()))
    with contextlib.suppress(FileNotFoundError):  # the current directory may have been deleted
        paths.append(os.getcwd())
    return paths


@dataclass(frozen=True)
class _Settings:
    rung: str
    lane: tuple[int, ...]
    device: Literal["cpu", "cuda"]
    environment: dict[str, str]
    role_folder: Path | None
