"""What a prompt says of the device: read from the kernel's files, or asked of NVIDIA's driver without a context."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cuda_l1.evaluator.environment import find_device, usable_cores
from cuda_l1.evaluator.gpus import Gpu
from cuda_l1.prompts.facts import DeviceFacts

_VECTORS = (
    *("sse4_2", "avx", "avx2", "fma", "f16c", "avx_vnni", "avx512f", "avx512bw", "avx512vl", "avx512_vnni"),
    *("avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "amx_int8", "asimd", "asimddp", "bf16", "sve", "sve2"),
)
"""Of the flags in /proc/cpuinfo, those that say how to compute with vectors."""
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_ATTRIBUTES = {"multiprocessors": 16, "l2_bytes": 38, "shared_memory_bytes": 97}
_CLOCK_KHZ, _BUS_BITS = 36, 37
"""Numbers of cuda.h."""
_LIBRARY = "libcuda.so.1"


def device_facts(text: str, lane: Sequence[int] | None = None) -> DeviceFacts:
    """The facts of the device that `auto`, `cpu`, `cuda` or `cuda:N` names; `lane` are a CPU's cores, default all.

    Raises as `find_device` does.
    """
    device = find_device(text)
    if device.gpu is not None:
        return _of_gpu(device.gpu, _driver())
    cpuinfo = Path("/proc/cpuinfo").read_text()
    return DeviceFacts(
        device="cpu",
        name=device.name,
        cores=len(lane or usable_cores()),
        vector_extensions=_vectors(cpuinfo),
        cache_bytes=_last_cache_bytes(_CACHES),
    )


def _vectors(cpuinfo: str) -> tuple[str, ...]:
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            there = set(value.split())
            return tuple(each for each in _VECTORS if each in there)
    return ()


def _last_cache_bytes(folder: Path) -> int | None:
    """Size of the cache of the highest level; None where the kernel does not say."""
    found: list[tuple[int, int]] = []
    for index in folder.glob("index*"):
        try:
            size = (index / "size").read_text().strip()
            found.append((int((index / "level").read_text()), int(size.removesuffix("K")) * 1024))
        except (OSError, ValueError):
            continue
    return max(found, default=(0, None))[1]


def _driver() -> Any:
    try:
        return ctypes.CDLL(_LIBRARY)
    except OSError:
        return None


def _of_gpu(gpu: Gpu, driver: Any) -> DeviceFacts:
    """What the management library said of a GPU, and where libcuda knows one of that name what it says."""
    number = _number_of(gpu.name, driver)
    known = {} if number is None else {key: _attribute(driver, number, at) for key, at in _ATTRIBUTES.items()}
    bandwidth = None
    if number is not None:
        clock_khz, bits = _attribute(driver, number, _CLOCK_KHZ), _attribute(driver, number, _BUS_BITS)
        bandwidth = 2 * clock_khz * 1e3 * bits / 8 / 1e9 if clock_khz and bits else None
    return DeviceFacts(
        device="cuda",
        name=gpu.name,
        compute_capability=".".join(map(str, gpu.capability)),
        memory_bytes=gpu.memory_bytes,
        bandwidth_gb_s=bandwidth,
        **known,
    )


def _number_of(name: str, driver: Any) -> int | None:
    """A device of that name: the two libraries may count in different orders, and equal GPUs have equal facts."""
    count, buffer = ctypes.c_int(), ctypes.create_string_buffer(96)
    if driver is None or driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return None
    for number in range(count.value):
        if driver.cuDeviceGetName(buffer, 96, number) == 0 and buffer.value.decode(errors="replace") == name:
            return number
    return None


def _attribute(driver: Any, number: int, attribute: int) -> int | None:
    value = ctypes.c_int()
    failed = driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, number)
    return None if failed or value.value <= 0 else value.value
