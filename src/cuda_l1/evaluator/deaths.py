"""How a guest ended, and whose doing that was."""

from __future__ import annotations

import contextlib
import re
import signal

from cuda_l1.errors import InfrastructureError
from cuda_l1.evaluator.failures import Failure
from cuda_l1.evaluator.processes import Exit, Guest
from cuda_l1.types import Outcome

LOG_TAIL = 3000
_DIED_WAIT_S = 5.0
_DEVICE_LOST = re.compile(
    r"no CUDA-capable device|device.{0,20}busy or unavailable|uncorrectable ECC|GPU is lost|fallen off the bus|"
    r"CUDA_ERROR_(NO_DEVICE|DEVICE_UNAVAILABLE|ECC_UNCORRECTABLE|SYSTEM_NOT_READY)"
)
"""What CUDA says when the device itself is at fault."""
_OWN_PLACE = re.compile(r'File "[^"\n]*?(cuda_l1/[^"\n]+\.py)", line (\d+)')
"""A frame of this package in a traceback."""


def failure_of(guest: Guest, told: dict[str, str], *, on_gpu: bool, rung: str) -> Failure:
    """What the judge saw of a candidate's process, refined by how the process ended.

    Raises InfrastructureError where neither the candidate nor its limits ended it.
    """
    outcome, detail = told["outcome"], told["detail"]
    if outcome == "DIED":
        outcome, detail = cause_of_death(guest, told["stage"], rung)
    elif on_gpu and _DEVICE_LOST.search(detail):
        # A candidate may say so too: a fault of the machine that only comes with it ends as CRASHED all the same.
        raise InfrastructureError(f"the device is lost: {detail}")
    contested = outcome == Outcome.OUT_OF_MEMORY and _shares_memory(guest.exit, on_gpu)
    return Failure(Outcome(outcome), detail, guest.log_tail(LOG_TAIL), contested=contested)


def _shares_memory(end: Exit | None, on_gpu: bool) -> bool:
    """Whether others share the memory that ran out: the machine's or a device's, not the candidate's own limit."""
    return end.reason != "memory" if end is not None and end.oom else on_gpu


def cause_of_death(guest: Guest, stage: str, rung: str) -> tuple[str, str]:
    """Outcome and one line for a process that hung up during `stage`."""
    with contextlib.suppress(TimeoutError):
        guest.wait(_DIED_WAIT_S)
    end = guest.exit
    if end is None:
        return "CRASHED", f"the candidate closed its channel during {stage}"
    if end.oom:
        return "OUT_OF_MEMORY", f"the process was ended for its memory during {stage}"
    if end.signal == signal.SIGKILL and end.reason is None and rung == "R2":
        # Process 1 of its namespace: the kernel drops SIGKILL from inside, so no candidate sent this one.
        raise InfrastructureError(f"something outside killed the {guest.role} during {stage}")
    if end.reason == "disk":
        return "CRASHED", f"the work directory was filled beyond its limit during {stage}"
    if end.reason == "processes":
        return "CRASHED", f"more processes than allowed were started during {stage}"
    how = f"signal {end.signal}" if end.signal else f"exit code {end.code}"
    return "CRASHED", f"the process ended with {how} during {stage}"


def end_of(guest: Guest) -> str:
    """How a guest ended and the last line that it printed, with the place in this package where there is one."""
    with contextlib.suppress(TimeoutError):
        guest.wait(_DIED_WAIT_S)
    end = guest.exit
    told = {} if end is None else {"reason": end.reason, "signal": end.signal, "code": end.code}
    how = ", ".join(f"{name} {value}" for name, value in told.items() if value is not None) or "still running"
    return f"{how}; {last_words(guest.log_tail(LOG_TAIL))}"


def last_words(log: str) -> str:
    """The last line of a log, and where in this package it came from: of a fault of our own that is what to report."""
    lines = log.strip().splitlines()
    places = _OWN_PLACE.findall(log)
    where = f" ({places[-1][0]}:{places[-1][1]})" if places else ""
    return lines[-1][:200] + where if lines else "it printed nothing"
