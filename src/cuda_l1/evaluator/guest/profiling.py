"""Where the time of one untimed call goes: torch's profiler in the runner, and what the judge takes of its word."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import torch

MOST_PARTS, NAME_CHARACTERS = 12, 160
LONGEST_US = 1e9
CALLS, LONG_US = 4, 0.5e6
"""So many calls are looked at on a CPU; no further one where one takes longer."""

_profile = torch.profiler.profile
_CPU = torch.profiler.ProfilerActivity.CPU
_now = time.perf_counter_ns


def operators_of(call: Callable[[], Any]) -> dict[str, Any]:
    """Own time of each operator of torch's within `call()` on a CPU, and of what is in none: of a few calls that of the
    shortest, since the first ones hold the profiler's own first steps."""
    shortest = _seen(call)
    for _ in range(CALLS - 1):
        if shortest["total_us"] < LONG_US:
            shortest = min(shortest, _seen(call), key=lambda seen: float(seen["total_us"]))
    return shortest


def _seen(call: Callable[[], Any]) -> dict[str, Any]:
    with _profile(activities=[_CPU]) as profiler:
        start = _now()
        call()
        total_us = (_now() - start) / 1e3
    found = [(str(each.key), each.count, each.self_cpu_time_total) for each in profiler.key_averages()]
    inside_us = sum(us for _, _, us in found)
    return {"kind": "operators", "outside_us": max(0.0, total_us - inside_us), **_summary(found, total_us)}


def kernels_of(events: Iterable[Any]) -> dict[str, Any]:
    """Device time of each kernel, copy and fill among the device's events of one call; the first fill is the harness's,
    which empties the cache."""
    ordered = sorted(events, key=lambda event: event.start_ns())
    flush = next((event for event in ordered if event.name().startswith("Memset")), None)
    found: dict[str, tuple[int, float]] = {}
    for event in ordered:
        if event is not flush:
            calls, us = found.get(event.name(), (0, 0.0))
            found[event.name()] = calls + 1, us + event.duration_ns() / 1e3
    parts = [(name, calls, us) for name, (calls, us) in found.items()]
    return {"kind": "kernels", "outside_us": None, **_summary(parts, sum(us for _, _, us in parts))}


def _summary(found: list[tuple[str, int, float]], total_us: float) -> dict[str, Any]:
    longest = sorted(found, key=lambda part: part[2], reverse=True)[:MOST_PARTS]
    return {"total_us": total_us, "parts": [[name[:NAME_CHARACTERS], calls, us] for name, calls, us in longest if us]}


def believable(told: Any) -> dict[str, Any] | None:
    """What a runner said of a profile, in the form in which it should have; None where it is not. The judge asks."""
    if not isinstance(told, dict) or told.get("kind") not in ("kernels", "operators"):
        return None
    outside_us, parts = told.get("outside_us"), told.get("parts")
    if not _is_time(told.get("total_us")) or not (outside_us is None or _is_time(outside_us)):
        return None
    if not isinstance(parts, list) or not all(map(_is_part, parts[:MOST_PARTS])):
        return None
    kept = [{"name": part[0][:NAME_CHARACTERS], "calls": part[1], "us": part[2]} for part in parts[:MOST_PARTS]]
    return {"kind": told["kind"], "total_us": told["total_us"], "parts": kept, "outside_us": outside_us}


def _is_part(part: Any) -> bool:
    if not isinstance(part, list) or len(part) != 3:
        return False
    name, calls, us = part
    return isinstance(name, str) and type(calls) is int and 0 <= calls < 1 << 31 and _is_time(us)


def _is_time(us: Any) -> bool:
    return type(us) in (int, float) and 0 <= us <= LONGEST_US  # no number that is none, and none beyond a float
