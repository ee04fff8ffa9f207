"""Which device, and what it is, without torch: names, versions, and the variables that pin a guest to it."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cuda_l1.errors import InfrastructureError, UsageError
from cuda_l1.types import Environment


@dataclass(frozen=True)
class Gpu:
    """One line of `nvidia-smi`."""

    index: int
    uuid: str
    name: str
    driver: str
    compute_capability: str


@functools.cache
def gpus() -> tuple[Gpu, ...]:
    """The NVIDIA GPUs that CUDA_VISIBLE_DEVICES leaves visible, in its order; () where there is no driver."""
    query = "index,uuid,name,driver_version,compute_cap"
    try:
        run = subprocess.run(
            ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"], capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    if run.returncode:
        return ()
    rows = [[cell.strip() for cell in line.split(",")] for line in run.stdout.splitlines() if line.strip()]
    found = [Gpu(int(r[0]), r[1], r[2], r[3], r[4]) for r in rows if len(r) == 5 and r[0].isdigit()]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return tuple(found)
    named = [v.strip() for v in visible.split(",") if v.strip()]
    return tuple(
        g for v in named for g in found if v == str(g.index) or (v.startswith("GPU-") and g.uuid.startswith(v))
    )


def resolve_device(device: str) -> str:
    """`auto`, `cpu`, `cuda`, `cuda:N` to `cpu` or `cuda:N`.

    Raises UsageError for any other text and InfrastructureError when that GPU is not there.
    """
    if device == "cpu" or (device == "auto" and not gpus()):
        return "cpu"
    match = re.fullmatch(r"auto|cuda(?::(\d+))?", device)
    if match is None:
        raise UsageError(f"device {device!r} is none of auto, cpu, cuda, cuda:N")
    index = int(match.group(1) or 0)
    if index >= len(gpus()):
        there = (
            f"{len(gpus())} NVIDIA GPUs are visible" if gpus() else "no NVIDIA GPU is visible (nvidia-smi finds none)"
        )
        raise InfrastructureError(f"device {device!r} is not there: {there}; use --device cpu")
    return f"cuda:{index}"


def device_variables(device: str) -> dict[str, str]:
    """Environment that shows a guest this GPU only, by its UUID, and the architecture to compile for."""
    if device == "cpu":
        return {"CUDA_VISIBLE_DEVICES": ""}
    gpu = gpus()[int(device.split(":")[1])]
    return {"CUDA_VISIBLE_DEVICES": gpu.uuid, "TORCH_CUDA_ARCH_LIST": gpu.compute_capability}


def cpu_name() -> str:
    """Model of the CPU as the kernel names it."""
    text = Path("/proc/cpuinfo").read_text(errors="replace")
    match = re.search(r"^(?:model name|Hardware|CPU implementer)\s*:\s*(.+)$", text, re.MULTILINE)
    return match.group(1).strip() if match else "unknown CPU"


def lane_name(cores: Sequence[int]) -> str:
    """`0-3,8` for (0, 1, 2, 3, 8)."""
    runs: list[list[int]] = []
    for core in sorted(cores):
        if runs and core == runs[-1][1] + 1:
            runs[-1][1] = core
        else:
            runs.append([core, core])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/cuda-l1`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cuda-l1"


def device_environment(
    device: str, lane: Sequence[int], rung: str, torch: str, cuda: str | None, python: str
) -> Environment:
    """Where an evaluation runs, as it is recorded."""
    if device == "cpu":
        return Environment(
            device="cpu", device_name=cpu_name(), lane=lane_name(lane), rung=rung, torch=torch, python=python
        )
    gpu = gpus()[int(device.split(":")[1])]
    return Environment(
        device="cuda",
        device_name=gpu.name,
        lane="gpu",
        rung=rung,
        torch=torch,
        cuda=cuda,
        driver=gpu.driver,
        python=python,
    )
