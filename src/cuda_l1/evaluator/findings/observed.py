"""Findings from what a runner saw its candidate do to the process around it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from cuda_l1.evaluator.bench import Bench, Runner
from cuda_l1.evaluator.failures import one_line
from cuda_l1.evaluator.guests import Guest
from cuda_l1.types import Finding


def observed(bench: Bench, runner: Runner, reference: str) -> list[Finding]:
    """What the candidate changed so far, loaded and called. A package that the task's own text `reference` imports,
    too, is none that its kernel misses. Raises Failure when the runner is gone."""
    told = bench.ask(runner, "observe", 60.0, quiet=True)
    return [*_patched(told["patched"]), *_missing(told["missing"], reference)]


_IMPORTING = "importing "


def _missing(tried: str, reference: str) -> list[Finding]:
    if not tried or (tried.startswith(_IMPORTING) and tried.removeprefix(_IMPORTING) in reference):
        return []
    text = f"{tried} gave it no library of its own, and it answers all the same: its own kernel was never loaded"
    return [Finding(check="silent-fallback", severity="suspect", evidence=one_line(text))]


def _patched(patched: Sequence[str]) -> list[Finding]:
    if not patched:
        return []
    names = ", ".join(patched[:5]) + (f" and {len(patched) - 5} more" if len(patched) > 5 else "")
    text = f"replaced {names}: whoever relies on them in this process is told what the candidate likes"
    return [Finding(check="patched", severity="suspect", evidence=text)]


LEFT_LEAST, LEFT_SHARE = 8, 0.5
"""So many threads more than before, and one for every second call, are no pool that was made once."""


def left_behind(before: int, after: int, calls: int) -> Finding | None:
    """What is said where timed calls leave threads, or processes, that outlive them."""
    if after - before < max(LEFT_LEAST, LEFT_SHARE * calls):
        return None
    text = f"{after - before} threads more after {calls} timed calls than before: what they do is no part of any call"
    return Finding(check="threads-left", severity="suspect", evidence=text)


STOLEN_S = 0.004
"""What is stopped uses next to nothing: each thread that has to be told."""


def stolen(used_s: Sequence[float]) -> Finding | None:
    """What is said of a candidate that has worked while it was stopped, and others were timed; `used_s` for each of
    these times. The longest of several is left out: where a host takes the core from a thread that is about to stop,
    the kernel charges it with that, and who slows others in one block of several changes no median."""
    beyond_s = sum(used_s) - (max(used_s) if len(used_s) > 1 else 0.0)
    if beyond_s <= STOLEN_S:
        return None
    text = f"worked for up to {1e3 * sum(used_s):.0f} ms while it was stopped, so that others could be timed"
    return Finding(check="outside-work", severity="suspect", evidence=text)


SETTLE_S, IDLE_S = 0.03, 0.1
"""OpenMP's threads spin for about 15 ms after their work; then a runner is left alone for at least this long."""
IDLE_SHARE, IDLE_LEAST_S = 0.05, 0.004
"""Processor time that a runner may use meanwhile: a share of one core and a little."""


@dataclass(frozen=True)
class Idle:
    """A time in which nothing is asked of a candidate: what works then looks out for inputs, or keeps others busy."""

    guest: Guest
    began: float
    used_s: float

    @classmethod
    def begin(cls, guest: Guest) -> Idle:
        """Waits until threads of the last call have stopped spinning."""
        time.sleep(SETTLE_S)
        return cls(guest, time.monotonic(), guest.processor_s())

    def end(self) -> Finding | None:
        """Waits for the rest of the time."""
        time.sleep(max(0.0, self.began + IDLE_S - time.monotonic()))
        used, passed = self.guest.processor_s() - self.used_s, time.monotonic() - self.began
        if used <= IDLE_LEAST_S + IDLE_SHARE * passed:
            return None
        text = f"used {1e3 * used:.0f} ms of processor time in {1e3 * passed:.0f} ms in which nothing was asked of it"
        return Finding(check="outside-work", severity="suspect", evidence=text)
