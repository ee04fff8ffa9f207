"""A process and everything that descends from it: list, stop, resume and kill.

The *keeper* of a guest (see `keeper.py`) is a subreaper: whatever the guest starts, daemons that called `setsid` and
whose parents died included, stays below the keeper, so its descendants are exactly the guest's processes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

_STOP_ROUNDS = 50
_STILL = ("T", "t", "Z", "X", None)
_PROCESS_TIME = 2
"""The scheduler's clock of a process, in the low bits of its clock id (the kernel's MAKE_PROCESS_CPUCLOCK)."""


def descendants(root: int) -> list[int]:
    """Process ids below `root` (not `root` itself), parents before children; [] when `root` is gone."""
    found: list[int] = []
    waiting = [root]
    while waiting:
        below = _children(waiting.pop(0))
        found += below
        waiting += below
    return found


def _children(pid: int) -> list[int]:
    below: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            below += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    except FileNotFoundError:
        if os.path.exists(f"/proc/{pid}") and not os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children"):
            return _children_by_scan(pid)  # a kernel without CONFIG_PROC_CHILDREN
    except (ProcessLookupError, PermissionError):
        pass
    return below


def _children_by_scan(pid: int) -> list[int]:
    return [other for name in os.listdir("/proc") if name.isdigit() and parent_of(other := int(name)) == pid]


def parent_of(pid: int) -> int | None:
    """The parent's process id, or None when `pid` is gone."""
    fields = _stat_fields(pid)
    return int(fields[1]) if fields else None


def state_of(process: int | str) -> str | None:
    """The state letter of /proc (`R`, `S`, `D`, `T`, `Z`) of a process, or of a thread (`PID/task/TID`); None when it
    is gone."""
    fields = _stat_fields(process)
    return fields[0] if fields else None


def _runs(pid: int) -> bool:
    """Whether any of it may go on: its first thread, which may have ended before the others, or one of these. What
    waits in the kernel (`D`) stops when that is over, and works no more."""
    if state_of(pid) not in _STILL:
        return True
    others: list[str] = []
    with contextlib.suppress(OSError):  # it is gone
        others = [name for name in os.listdir(f"/proc/{pid}/task") if name != str(pid)]
    return any(state_of(f"{pid}/task/{name}") not in (*_STILL, "D") for name in others)


def _stat_fields(process: int | str) -> list[str] | None:
    """The fields of /proc/PROCESS/stat after the name, which may itself hold spaces and brackets."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def processor_s(root: int) -> float:
    """Seconds of processor time that what lives below `root` has used, all threads together."""
    return sum(processor_s_of_each(root).values())


def processor_s_of_each(root: int) -> dict[int, float]:
    """The same of each process, by its id."""
    used = {}
    for pid in descendants(root):
        with contextlib.suppress(OSError):  # it has ended
            used[pid] = time.clock_gettime((~pid << 3) | _PROCESS_TIME)
    return used


HALT_S = 10e-6
"""Processor time of a turn in which a process does nothing but come to a halt. To be woken, to start another one by
`clone` and to stop again took 38 us at the least, in 60 trials."""


class Turns(NamedTuple):
    """What the first thread of a process has had of the cores; zeros where the kernel does not count that."""

    number: int
    """How often it has been given one."""
    used_s: float

    def has_run_since(self, before: Turns) -> bool:
        """Whether it has done anything, however little that takes. One turn is none that lasts no longer than coming to
        a halt: a kernel that can be interrupted itself says of a process that it is stopped, and may then take it from
        its core for a moment."""
        is_halt = self.number == before.number + 1 and self.used_s - before.used_s <= HALT_S
        return self.number != before.number and not is_halt


def turns_of_each(root: int) -> dict[int, Turns]:
    """`Turns` of each process that is no zombie, by its id. They stand still while a process is stopped."""
    turns = {}
    for pid in descendants(root):
        if state_of(pid) in (None, "Z", "X"):
            continue
        turns[pid] = Turns(0, 0.0)
        with contextlib.suppress(OSError, ValueError, IndexError):
            used_ns, _, count = Path(f"/proc/{pid}/schedstat").read_text().split()[:3]
            turns[pid] = Turns(int(count), 1e-9 * int(used_ns))
    return turns


def threads(root: int) -> int:
    """How many threads live below `root`, those of child processes among them."""
    total = 0
    for pid in descendants(root):
        with contextlib.suppress(OSError):  # it has ended
            total += len(os.listdir(f"/proc/{pid}/task"))
    return total


def send(pid: int, number: int) -> None:
    """Signal one process; one that is gone is no error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def stop(root: int, timeout_s: float = 1.0) -> bool:
    """SIGSTOP everything below `root` and wait until nothing of it runs; False when that took too long."""
    deadline = time.monotonic() + timeout_s
    while True:
        running = [pid for pid in descendants(root) if _runs(pid)]
        if not running:
            return True
        for pid in running:
            send(pid, signal.SIGSTOP)
        if time.monotonic() > deadline:
            return False


def resume(root: int) -> None:
    """SIGCONT everything below `root`, children first, so that no parent finds its child still stopped."""
    for pid in reversed(descendants(root)):
        send(pid, signal.SIGCONT)


def kill(root: int) -> None:
    """SIGKILL everything below `root`.

    Everything is stopped first, in rounds until no new process appears, so that a storm of forks cannot outrun it.
    """
    known: set[int] = set()
    for _ in range(_STOP_ROUNDS):
        fresh = set(descendants(root)) - known
        if not fresh:
            break
        for pid in fresh:
            send(pid, signal.SIGSTOP)
        known |= fresh
    for pid in known | set(descendants(root)):
        send(pid, signal.SIGKILL)
