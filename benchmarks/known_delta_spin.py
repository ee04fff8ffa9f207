"""Delays of a known length, measured without the evaluator: a loop on the host, a spinning kernel on a GPU.

    echo '{"source": ..., "device": "cuda", "us": [3.5, 70]}' | python benchmarks/known_delta_spin.py

Prints {"host": [[amount, us], ...], "device": ...}: for each length asked for, what to put into the delay's text, and
how long that delay was found to be. Run by `known_delta.py`.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HOST_SPIN = """import time


def before():
    end = time.perf_counter_ns() + {amount}
    while time.perf_counter_ns() < end:
        pass


def behind():
    pass
"""
"""`amount`: nanoseconds."""
DEVICE_SPIN = """import triton
from triton.language.extra.cuda import globaltimer


@triton.jit
def spin(nanoseconds):
    begin = globaltimer()
    while globaltimer() - begin < nanoseconds:
        pass


def before():
    pass


def behind():
    spin[(1,)]({amount}, num_warps=1)
"""
"""`amount`: nanoseconds of the GPU's timer, which runs evenly: the multiprocessors' clock slows under load."""
CHAIN, ROUNDS = 40, 9


def main() -> None:
    asked = json.load(sys.stdin)
    found = {"host": [host(us) for us in asked["us"]]}
    if asked["device"] != "cpu":
        found["device"] = device(asked["source"], asked["us"])
    sys.stdout.write(json.dumps(found))


def host(us: float) -> tuple[int, float]:
    """The loop's nanoseconds, and what it takes with entering and leaving it; microseconds."""
    space: dict[str, Any] = {}
    amount = round(1e3 * us)
    exec(HOST_SPIN.format(amount=amount), space)
    spin, times = space["before"], []
    for _ in range(300):
        begin = time.perf_counter_ns()
        spin()
        times.append(time.perf_counter_ns() - begin)
    empty = statistics.median(_empty() for _ in range(300))
    return amount, (statistics.median(times) - empty) / 1e3


def _empty() -> int:
    begin = time.perf_counter_ns()
    return time.perf_counter_ns() - begin


def device(source: str, lengths: list[float]) -> list[tuple[int, float]]:
    """Nanoseconds for each length, and what they add to the reference's own call in a chain of such calls, in us."""
    import torch

    space: dict[str, Any] = {"__name__": "reference"}
    exec(source, space)
    model = space["Model"](*space["get_init_inputs"]()).cuda()
    inputs = [x.cuda() for x in space["get_inputs"]()]
    spin = _loaded(DEVICE_SPIN.format(amount="amount")).spin

    def chain(amount: int | None) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(CHAIN):
            model(*inputs)
            if amount is not None:
                spin[(1,)](amount, num_warps=1)
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3 / CHAIN

    with torch.no_grad():
        least, more = added(chain, 0), added(chain, 100_000)
        per_nanosecond = (more - least) / 100_000
        amounts = [max(0, round((us - least) / per_nanosecond)) for us in lengths]
        return [(amount, added(chain, amount)) for amount in amounts]


def _loaded(text: str) -> Any:
    """A module of a text, from a file: Triton reads its kernels' sources there."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spin.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("spin", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


def added(chain: Callable[[int | None], float], amount: int) -> float:
    """What a spin adds to a call, microseconds: median over rounds that alternate."""
    chain(None)
    return statistics.median(chain(amount) - chain(None) for _ in range(ROUNDS))


if __name__ == "__main__":
    main()
