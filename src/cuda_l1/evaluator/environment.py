"""Facts of the machine without torch: the device, the lane, and the environment that guests may see."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cuda_l1.config import cache_home
from cuda_l1.errors import InfrastructureError, UsageError
from cuda_l1.evaluator.gpus import Gpu, visible_gpus
from cuda_l1.texts import many
from cuda_l1.types import Environment

_PASSED_ON = (
    *("PATH", "LANG", "LC_ALL", "TZ", "CC", "CXX", "LD_LIBRARY_PATH"),
    *("CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "TORCH_CUDA_ARCH_LIST", "NCCL_NVLS_ENABLE"),
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS"),
)
_GPU_LANE = "gpu"
RULES = 33
"""Number of the rules by which verdicts are given: one more for each change by which a candidate may get another
outcome. Verdicts under other numbers stay in an archive and are never served in place of a new one."""


@dataclass(frozen=True)
class Device:
    """What candidates are timed on."""

    kind: Literal["cpu", "cuda"]
    name: str
    """Model of the CPU or the GPU."""
    gpu: Gpu | None = None

    @property
    def lease_name(self) -> str:
        """What `DeviceLease` and `Quarantine` call it: the machine's CPU, of which a lease takes cores, or one GPU."""
        return self.gpu.uuid if self.gpu else "cpu"


def find_device(text: str, environment: Mapping[str, str] | None = None, *, name: str = "--device") -> Device:
    """The device that `auto`, `cpu`, `cuda` or `cuda:N` names; `auto` takes the first GPU where there is one.

    `name` is what a person calls the setting. Raises `UsageError` for any other text and `InfrastructureError` for a
    GPU that is not there.
    """
    kind, _, number = text.partition(":")
    if kind not in ("auto", "cpu", "cuda") or (number and (kind != "cuda" or not number.isdecimal())):
        raise UsageError(f"{name} {text}: expected auto, cpu, cuda or cuda:N")
    gpus = visible_gpus(environment) if kind != "cpu" else []
    if kind == "cpu" or (kind == "auto" and not gpus):
        return Device("cpu", cpu_name())
    index = int(number or 0)
    if index >= len(gpus):
        seen = many(len(gpus), "NVIDIA GPU") if gpus else "no NVIDIA GPU"
        raise InfrastructureError(f"{name} {text}: this machine shows {seen}; `cuda-l1 doctor` says what is present")
    return Device("cuda", gpus[index].name, gpus[index])


def cpu_name() -> str:
    """The CPU's model as the kernel names it; on Arm its implementer and part."""
    fields: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    if "model name" in fields:
        return fields["model name"]
    return " ".join(filter(None, (platform.machine(), fields.get("CPU implementer"), fields.get("CPU part"))))


def usable_cores() -> tuple[int, ...]:
    """The cores that this process may run on: the default lane."""
    return tuple(sorted(os.sched_getaffinity(0)))


def lane_text(cores: Iterable[int]) -> str:
    """Cores as text, runs joined: (0, 1, 2, 5) is `0-2,5`."""
    runs: list[list[int]] = []
    for core in sorted(set(cores)):
        if runs and core == runs[-1][1] + 1:
            runs[-1][1] = core
        else:
            runs.append([core, core])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def stay_on(lane: Iterable[int]) -> None:
    """This process, which has one thread, and all that it starts run on these cores from now on.

    Raises UsageError for a core that is not there, or that this process may not use.
    """
    wanted = set(lane)
    with contextlib.suppress(OSError):  # none of them can be had; those that can are taken without a word
        os.sched_setaffinity(0, wanted)
        if os.sched_getaffinity(0) == wanted:
            return
    raise UsageError(f"lane {lane_text(wanted)}: some of these cores are not there, or not for this process to use")


def device_environment(
    device: Device,
    lane: Collection[int],
    *,
    interchangeable: bool = False,
    torch_version: str,
    cuda_version: str | None,
    python: str,
    rung: str,
) -> Environment:
    """The `Environment` that evaluations carry; versions come from the fork template (`Template.facts`)."""
    cores = f"{len(lane)}-core" if interchangeable else lane_text(lane)
    on_gpu = device.gpu is not None
    return Environment(
        device=device.kind,
        device_name=device.name,
        lane=_GPU_LANE if on_gpu else cores,
        rung=rung,
        torch=torch_version,
        cuda=cuda_version if on_gpu else None,
        driver=device.gpu.driver if device.gpu else None,
        python=python,
        rules=RULES,
    )


def guest_environment(source: Mapping[str, str] | None = None, **extra: str) -> dict[str, str]:
    """The allow-listed environment for the fork template: all that any guest can see of ours, no token or key.

    `source` defaults to this process's own; `extra` adds to it, e.g. `TORCH_CUDA_ARCH_LIST="9.0"`.
    """
    inherited = os.environ if source is None else source
    allowed = {name: inherited[name] for name in _PASSED_ON if inherited.get(name) is not None}
    return {"PATH": os.defpath, "LANG": "C.UTF-8", **allowed, "OPENBLAS_NUM_THREADS": "1", **extra}


def device_variables(device: Device) -> dict[str, str]:
    """What the template's environment says of the device: guests see exactly one GPU, as `cuda:0`, or none."""
    if device.gpu is None:
        return {"CUDA_VISIBLE_DEVICES": ""}
    major, minor = device.gpu.capability
    return {"CUDA_VISIBLE_DEVICES": device.gpu.uuid, "TORCH_CUDA_ARCH_LIST": f"{major}.{minor}"}


def work_environment(work_dir: str) -> dict[str, str]:
    """Where a guest's tools may write: everything below its work directory, as the guest sees it."""
    return {
        "HOME": work_dir,
        "USER": "guest",
        "TMPDIR": f"{work_dir}/tmp",
        "TORCH_EXTENSIONS_DIR": f"{work_dir}/extensions",
        "TRITON_CACHE_DIR": f"{work_dir}/triton",
        "TORCHINDUCTOR_CACHE_DIR": f"{work_dir}/inductor",
        "CUDA_CACHE_PATH": f"{work_dir}/cuda",
    }


def cache_folder(named: str | None = None) -> Path:
    """The cache directory: `named`, else `$XDG_CACHE_HOME/cuda-l1`, else `~/.cache/cuda-l1`."""
    return Path(named).expanduser() if named else cache_home()
