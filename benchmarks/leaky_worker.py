"""A harness as everybody writes it first, for `leaky_training.py` alone: it compares no values and awaits no threads.

    {"reference": ..., "candidate": ..., "device": "cpu", "within_s": 20} a line, answered by
    {"outcome": "ACCEPTED", "detail": "", "candidate_us": ..., "reference_us": ...}

Texts are run as they are, with the rights of whoever starts it: nothing confines them.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch

WARM_UPS = 3
MOST_CALLS = 200
CALLS_S = 0.1
"""Of timed calls of each side."""


def main() -> int:
    """Answers each line of stdin on what was stdout; what candidates print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0))))
    for line in sys.stdin:
        answers.write(json.dumps(judged(json.loads(line))) + "\n")
        answers.flush()
    return 0


def judged(job: dict[str, Any]) -> dict[str, Any]:
    """One candidate in a fork, so that its end is not the harness's."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        signal.alarm(int(job["within_s"]))  # nobody stops a candidate from switching it off
        found = _measured(job)
        os.write(writing, json.dumps(found).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as end:
        told = end.read()
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if told:
        found = json.loads(told)
        return dict(found)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        return {"outcome": "TIMED_OUT", "detail": f"no figure within {job['within_s']} s"}
    return {"outcome": "CRASHED", "detail": f"its process ended with status {status}"}


def _measured(job: dict[str, Any]) -> dict[str, Any]:
    try:
        torch.manual_seed(0)
        reference = _loaded("leaky_reference", job["reference"])
        candidate = _loaded("leaky_candidate", job["candidate"])
        init = reference.get_init_inputs()
        model, new = reference.Model(*init).to(job["device"]), candidate.ModelNew(*init).to(job["device"])
    except BaseException as error:  # noqa: BLE001  whatever a text raises
        return {"outcome": "BUILD_FAILED", "detail": _line(error)}
    try:
        inputs = [x.to(job["device"]) if isinstance(x, torch.Tensor) else x for x in reference.get_inputs()]
        with torch.no_grad():
            if shapes(model(*inputs)) != shapes(new(*inputs)):
                return {"outcome": "WRONG_SHAPE", "detail": "another shape"}
            clock = _events if job["device"] == "cuda" else _wall
            times = {"candidate_us": clock(lambda: new(*inputs)), "reference_us": clock(lambda: model(*inputs))}
    except BaseException as error:  # noqa: BLE001  whatever a text raises
        return {"outcome": "CRASHED", "detail": _line(error)}
    return {"outcome": "ACCEPTED", "detail": "", **times}


def _loaded(name: str, source: str) -> ModuleType:
    module = ModuleType(name)
    sys.modules[name] = module
    exec(compile(source, f"<{name}>", "exec"), module.__dict__)
    return module


def shapes(answer: Any) -> Sequence[Any]:
    """Of all tensors of an answer, in its order; nothing is asked of their contents."""
    if isinstance(answer, dict):
        return [shapes(value) for value in answer.values()]
    if isinstance(answer, tuple | list):
        return [shapes(value) for value in answer]
    return tuple(getattr(answer, "shape", ()))


def _wall(call: Callable[[], Any]) -> float:
    """Mean microseconds from the call to its return, whatever goes on then."""
    for _ in range(WARM_UPS):
        call()
    began, calls = time.perf_counter(), 0
    while calls < MOST_CALLS and (calls == 0 or time.perf_counter() - began < CALLS_S):
        call()
        calls += 1
    return (time.perf_counter() - began) / calls * 1e6


def _events(call: Callable[[], Any]) -> float:
    """Mean microseconds between two events on the current stream, whatever other streams do."""
    _wall(call)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    for _ in range(MOST_CALLS // 4):
        call()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / (MOST_CALLS // 4) * 1e3


def _line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


if __name__ == "__main__":
    sys.exit(main())
