"""What a device can do at the most, measured: bytes copied and operations of a large product in a microsecond."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from .arithmetic import backend_precision
from .copying import copy_bytes_per_us, timing_events

ROUNDS = 4
CPU_COPY_BYTES = 64 << 20
SIDE = {"cpu": 768, "cuda": 4096}
"""Of the square matrices whose product is timed."""
GPU_CLASSES = {"tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def ceilings(device: str) -> dict[str, Any]:
    """`bytes_per_us` read and written by a copy; `flops_per_us` of a product by precision class, on a CPU one."""
    if device == "cpu":
        return {"bytes_per_us": _cpu_bytes_per_us(), "flops_per_us": {"fp32": _product(device, torch.float32)}}
    found = {"fp32": _product(device, torch.float32)}
    for name, dtype in GPU_CLASSES.items():
        found[name] = _product(device, dtype, tf32=name == "tf32")
    made = {"bytes_per_us": copy_bytes_per_us(device), "flops_per_us": found}
    torch.cuda.empty_cache()  # the runners need the memory
    return made


def _cpu_bytes_per_us() -> float:
    source = torch.ones(CPU_COPY_BYTES, dtype=torch.uint8)
    target = torch.empty_like(source)
    return 2 * CPU_COPY_BYTES / _least_us("cpu", lambda: target.copy_(source))


def _product(device: str, dtype: torch.dtype, *, tf32: bool = False) -> float:
    side = SIDE[torch.device(device).type]
    one, other = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    result = torch.empty_like(one)
    with torch.no_grad(), backend_precision(tf32=tf32):
        return 2 * side**3 / _least_us(device, lambda: torch.mm(one, other, out=result))


def _least_us(device: str, work: Callable[[], Any]) -> float:
    """Microseconds of the fastest of a few rounds, the first of which warms up."""
    return min([_once_us(device, work) for _ in range(ROUNDS + 1)][1:])


def _once_us(device: str, work: Callable[[], Any]) -> float:
    if device == "cpu":
        start = time.perf_counter_ns()
        work()
        return (time.perf_counter_ns() - start) / 1e3
    begin, end = timing_events()
    begin.record()
    work()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) * 1e3
