"""What hardware counters say of a candidate's kernels, by Nsight Compute (`ncu`) where it is there and permitted.

It runs in a guest of its own at sandbox rung R2, with the candidate below it. `ncu` and its target talk through
sockets, so this guest may use them: it sees no network but its own, and no file that could be another's socket.
"""

from __future__ import annotations

import contextlib
import csv
import glob
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from cuda_l1.config import Limits
from cuda_l1.errors import InfrastructureError
from cuda_l1.evaluator.failures import one_line
from cuda_l1.evaluator.guest.channel import ChannelClosed, ProtocolError
from cuda_l1.evaluator.guest_files import put_file
from cuda_l1.evaluator.processes import Guest, Template, wait
from cuda_l1.types import Candidate, Counters, KernelCounters, Task

LONGEST_S = 90.0
MOST_LAUNCHES, MOST_KERNELS = 32, 6
MOST_FAILURES = 2
"""So many candidates in a row without counters: it is not they who do not work."""
NEEDED_RUNG = "R2"
PERMISSION = "ERR_NVGPUCTRPERM"
_TARGET = Path(__file__).parent / "guest" / "counted_call.py"
_METRICS = {
    "us": "gpu__time_duration.sum",
    "compute_pct": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "memory_pct": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "read_bytes": "dram__bytes_read.sum",
    "written_bytes": "dram__bytes_write.sum",
    "l2_hit_pct": "lts__t_sector_hit_rate.pct",
    "occupancy_pct": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "occupancy_limit_pct": "sm__maximum_warps_per_active_cycle_pct",
    "registers": "launch__registers_per_thread",
    "shared_static": "launch__shared_mem_per_block_static",
    "shared_dynamic": "launch__shared_mem_per_block_dynamic",
    "waves": "launch__waves_per_multiprocessor",
}
"""Ours and Nsight Compute's names: those of its sections SpeedOfLight, MemoryWorkloadAnalysis, Occupancy and
LaunchStats, which every GPU from Volta on has."""
_STALLS = (
    "long_scoreboard",
    "short_scoreboard",
    "barrier",
    "math_pipe_throttle",
    "mio_throttle",
    "lg_throttle",
    "wait",
)
_STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
_TIMES = {"ns": 1e-3, "nsecond": 1e-3, "us": 1.0, "usecond": 1.0, "ms": 1e3, "msecond": 1e3, "s": 1e6, "second": 1e6}
_SIZES = {f"{prefix}byte{of}": 1e3**n for n, prefix in enumerate(("", "K", "M", "G")) for of in ("", "/block")}
_UNITS = {**_TIMES, **_SIZES}
"""Factors to microseconds and bytes; all other units are taken as they are."""


class Nsight:
    """Asks Nsight Compute, as long as it answers on this machine."""

    def __init__(self, template: Template) -> None:
        self._template = template
        self._failures = 0
        self._missing = ""

    def counters(
        self, task: Task, candidate: Candidate, *, mode: str, limits: Limits, prepare: Callable[[Path], None]
    ) -> Counters:
        """The counters of one call in `mode` (`train`, `eval`), or why there are none. Holds the device meanwhile.

        `prepare` fills the work directory with what the candidate has built. Raises nothing for what the candidate, the
        tool or the sandbox does; after a lasting reason it is not started again.
        """
        self._missing = self._missing or self._obstacle()
        if self._missing:
            return Counters(missing=self._missing)
        try:
            kernels = self._watched(task, candidate, mode, limits, prepare)
        except _NoCounters as error:
            self._failures += 1
            if error.lasting or self._failures == MOST_FAILURES:
                self._missing = str(error)
            return Counters(missing=str(error))
        self._failures = 0
        return Counters(kernels=kernels)

    def _obstacle(self) -> str:
        if find_ncu() is None:
            return "Nsight Compute (`ncu`) was not found"
        if self._template.rung != NEEDED_RUNG:
            return f"Nsight Compute needs sandbox rung {NEEDED_RUNG}, and this is {self._template.rung}"
        return ""

    def _watched(
        self, task: Task, candidate: Candidate, mode: str, limits: Limits, prepare: Callable[[Path], None]
    ) -> tuple[KernelCounters, ...]:
        ncu = find_ncu()
        assert ncu is not None
        reads = ["/etc/hosts", os.path.dirname(os.path.realpath(ncu))]
        try:
            with self._template.spawn("counters", {}, read_paths=reads, limits=limits, loopback=True) as guest:
                prepare(guest.work_dir)
                files = [
                    put_file(guest, NEEDED_RUNG, name, text)
                    for name, text in (("candidate.py", candidate.source), ("reference_task.py", task.source))
                ]
                table = f"{os.path.dirname(files[0])}/counters.csv"
                told = _answer(guest, {"command": command(ncu, table, [*files, mode]), "table": table})
        except (InfrastructureError, OSError) as error:
            raise _NoCounters(
                f"Nsight Compute could not be started: {one_line(str(error), 200)}", lasting=True
            ) from None
        text, said = str(told.get("table", "")), str(told.get("said", ""))
        if kernels := parse(text):
            return kernels
        raise _no_counters(f"{text}\n{said}")


class _NoCounters(Exception):
    """Why there are none; `lasting`: there will be none for the next candidate, either."""

    def __init__(self, reason: str, *, lasting: bool = False) -> None:
        super().__init__(reason)
        self.lasting = lasting


def find_ncu() -> str | None:
    """`ncu` on the PATH, in $CUDA_HOME or where NVIDIA's packages put it; None where it is not."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    there = shutil.which("ncu") or shutil.which("ncu", path=f"{home}/bin")
    return there or max(glob.glob("/opt/nvidia/nsight-compute/*/ncu"), default=None)


def command(ncu: str, table: str, arguments: Iterable[str]) -> list[str]:
    """What counts the one call of `counted_call.py` between its marks, written to `table` as comma-separated values.

    The clocks stay as they are: by default `ncu` holds the GPU at its base clock.
    """
    names = [*_METRICS.values(), *map(_STALL.format, _STALLS)]
    options = {
        "--page": "raw",
        "--print-units": "base",
        "--print-kernel-base": "function",
        "--log-file": table,
        "--profile-from-start": "off",
        "--clock-control": "none",
        "--target-processes": "application-only",
        "--launch-count": str(MOST_LAUNCHES),
        "--metrics": ",".join(names),
    }
    chosen = [word for option in options.items() for word in option]
    return [ncu, "--csv", *chosen, sys.executable, "-I", os.fspath(_TARGET), *arguments]


def parse(text: str) -> tuple[KernelCounters, ...]:
    """The kernels of a table that `ncu --csv --page raw` wrote, the longest first; none where it holds no table.

    The table has one row for each launch, below a row of names and a row of units; lines of the tool's own (`==PROF==`)
    stand around it. Launches of one name are added up, and the longest of them gives the counters. What the tool left
    out, or could not count (`n/a`), is None.
    """
    lines = [line for line in text.splitlines() if line.startswith('"')]
    rows = list(csv.reader(lines, strict=False))
    if len(rows) < 3 or "Kernel Name" not in rows[0]:
        return ()
    units = dict(zip(rows[0], rows[1], strict=False))
    launches: dict[str, list[dict[str, float]]] = {}
    for row in rows[2:]:
        cells = dict(zip(rows[0], row, strict=False))
        found = {name: number for name in units if (number := _number(cells.get(name), units[name])) is not None}
        if found.get(_METRICS["us"], 0.0) > 0:
            launches.setdefault(one_line(cells["Kernel Name"], 160) or "?", []).append(found)
    kernels = [_kernel(name, found) for name, found in launches.items()]
    return tuple(sorted(kernels, key=lambda kernel: kernel.us, reverse=True)[:MOST_KERNELS])


def _kernel(name: str, launches: list[dict[str, float]]) -> KernelCounters:
    longest = max(launches, key=lambda launch: launch[_METRICS["us"]])
    figures: dict[str, Any] = {ours: longest.get(theirs) for ours, theirs in _METRICS.items()}
    shared = [value for kind in ("static", "dynamic") if (value := figures.pop(f"shared_{kind}")) is not None]
    waited: dict[str, float] = {stall: longest.get(_STALL.format(stall), 0.0) for stall in _STALLS}
    most = max(waited, key=lambda stall: waited[stall])
    figures |= {
        "us": sum(launch[_METRICS["us"]] for launch in launches),
        "shared_bytes": sum(shared) if shared else None,
        "stall": most if waited[most] else None,
    }
    return KernelCounters(name=name, launches=len(launches), **figures)


def _number(cell: str | None, unit: str) -> float | None:
    """A cell's value in microseconds, bytes or its own unit; None for what is no number, or none that can be."""
    with contextlib.suppress(ValueError):
        value = float((cell or "").replace(",", "")) * _UNITS.get(unit, 1.0)
        return value if math.isfinite(value) and 0.0 <= value <= 1e15 else None
    return None


def _answer(guest: Guest, message: dict[str, Any]) -> dict[str, Any]:
    try:
        guest.channel.send(message)
        if not wait([guest.channel], [guest], time.monotonic() + LONGEST_S):
            raise _NoCounters(f"Nsight Compute did not end within {LONGEST_S:.0f} s")
        return guest.channel.receive(5.0)[0]
    except (ChannelClosed, ProtocolError, TimeoutError):
        end = guest.wait(5.0)
        why = end.reason or (f"signal {end.signal}" if end.signal else f"exit {end.code}")
        raise _NoCounters(f"Nsight Compute ended ({why}): {one_line(guest.log_tail(300), 200)}") from None


def _no_counters(said: str) -> _NoCounters:
    """The tool's own reason."""
    if PERMISSION in said:
        text = f"this user may not read the GPU's counters ({PERMISSION}): https://developer.nvidia.com/{PERMISSION}"
        return _NoCounters(text, lasting=True)
    lines = [line for line in said.splitlines() if line.startswith(("==ERROR==", "==WARNING=="))]
    words = lines or [line for line in said.splitlines() if line.strip()][-3:]
    return _NoCounters(f"Nsight Compute counted nothing: {one_line(' '.join(words), 300) or 'it said nothing'}")
