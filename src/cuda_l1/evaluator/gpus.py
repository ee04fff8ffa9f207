"""The NVIDIA GPUs of this machine, from the driver's management library (NVML): no torch and no CUDA context."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_TEXT_BYTES = 96
_LIBRARY = "libnvidia-ml.so.1"


@dataclass(frozen=True)
class Gpu:
    """One GPU."""

    index: int
    """Place among the visible ones: N of `cuda:N`."""
    name: str
    uuid: str
    capability: tuple[int, int]
    """Compute capability, e.g. (9, 0)."""
    memory_bytes: int
    driver: str


def visible_gpus(environment: Mapping[str, str] | None = None) -> list[Gpu]:
    """The GPUs that `CUDA_VISIBLE_DEVICES` leaves, in its order, else all in PCI order; [] without a driver."""
    everything = _all_gpus()
    wanted = (os.environ if environment is None else environment).get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return everything
    chosen: list[Gpu] = []
    for text in wanted.split(","):
        match = _find(everything, text.strip())
        if match is None:  # CUDA too ignores everything from the first entry that names no device
            break
        chosen.append(Gpu(len(chosen), *(getattr(match, field) for field in list(Gpu.__dataclass_fields__)[1:])))
    return chosen


def _find(gpus: list[Gpu], text: str) -> Gpu | None:
    if text.isdecimal():
        return next((gpu for gpu in gpus if gpu.index == int(text)), None)
    return next((gpu for gpu in gpus if text and gpu.uuid.startswith(text)), None)


def _all_gpus() -> list[Gpu]:
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return []
    if library.nvmlInit_v2() != 0:
        return []
    try:
        count = ctypes.c_uint()
        library.nvmlDeviceGetCount_v2(ctypes.byref(count))
        driver = _text(library.nvmlSystemGetDriverVersion)
        return [_gpu(library, index, driver) for index in range(count.value)]
    finally:
        library.nvmlShutdown()


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


def _gpu(library: Any, index: int, driver: str) -> Gpu:
    handle = ctypes.c_void_p()
    library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle))
    major, minor, memory = ctypes.c_int(), ctypes.c_int(), _Memory()
    library.nvmlDeviceGetCudaComputeCapability(handle, ctypes.byref(major), ctypes.byref(minor))
    library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
    return Gpu(
        index,
        _text(library.nvmlDeviceGetName, handle),
        _text(library.nvmlDeviceGetUUID, handle),
        (major.value, minor.value),
        memory.total,
        driver,
    )


def _text(function: Any, *arguments: Any) -> str:
    buffer = ctypes.create_string_buffer(_TEXT_BYTES)
    function(*arguments, buffer, ctypes.c_uint(_TEXT_BYTES))
    return buffer.value.decode(errors="replace")
