"""The checks of `doctor`, one small function each. Nothing here loads torch into this process."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from importlib import metadata
from pathlib import Path

from cuda_l1.errors import CudaL1Error
from cuda_l1.texts import many
from cuda_l1.types import Frozen

ENOUGH_BYTES = 4 << 30
"""Free disk below which builds of large candidates may fail."""


class Check(Frozen):
    """One thing that may be missing."""

    name: str
    present: bool
    detail: str
    """What was found, or why not."""
    needed: bool = False
    """Nothing can be judged without it."""
    costs: str = ""
    """What does not work without it; empty where it is present."""
    remedy: str = ""
    """How to get it; empty where it is present."""


def checkup(archive: str | None = None) -> list[Check]:
    """Every check, in the order in which a person would mend things."""
    return list(_checks(archive))


def _checks(archive: str | None) -> Iterator[Check]:
    yield _linux()
    yield _torch()
    yield _gpu()
    yield _tool("C++ compiler", compiler(), "no C++ candidates and no torch.compile on a CPU", "sudo apt install g++")
    yield _tool(
        "nvcc", nvcc(), "candidates that bring CUDA C++ through load_inline cannot build", "install the CUDA toolkit"
    )
    yield _triton()
    yield _nsight()
    yield _sandbox()
    yield _disk()
    yield _archive(archive)


def _check(name: str, reason: str | None, detail: str, costs: str, remedy: str, *, needed: bool = False) -> Check:
    """Absent for `reason`, or present with `detail`."""
    if reason is None:
        return Check(name=name, present=True, detail=detail, needed=needed)
    return Check(name=name, present=False, detail=reason, needed=needed, costs=costs, remedy=remedy)


def _linux() -> Check:
    system = platform.system()
    reason = None if system == "Linux" else f"this is {system}"
    detail = f"{platform.release()}, {many(len(os.sched_getaffinity(0)) if reason is None else 0, 'core')}"
    return _check("Linux", reason, detail, "candidates cannot be walled off", "use Linux, a VM or WSL 2", needed=True)


def _torch() -> Check:
    costs, remedy = "nothing can be judged", "pip install 'torch>=2.9'"
    made = partial(_check, "torch", costs=costs, remedy=remedy, needed=True)
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return made("not installed", "")
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    return made(None if numbers >= (2, 9) else f"{version} is older than 2.9", f"{version}, built for {torch_build()}")


def torch_build() -> str:
    """`CUDA 13.0` or `CPU only`, read from torch's files without importing it; `unknown` where they do not say."""
    spec = importlib.util.find_spec("torch")
    folder = next(iter(spec.submodule_search_locations or ()), None) if spec else None
    text = Path(folder, "version.py").read_text() if folder and Path(folder, "version.py").exists() else ""
    match = re.search(r"^cuda\b[^=]*= *(.+)$", text, re.MULTILINE)
    if match is None:
        return "unknown"
    return "CPU only" if match[1].strip() == "None" else f"CUDA {match[1].strip().strip(chr(39) + chr(34))}"


def _gpu() -> Check:
    from cuda_l1.evaluator.environment import cache_folder
    from cuda_l1.evaluator.gpus import visible_gpus
    from cuda_l1.evaluator.quarantine import Quarantine

    gpus = visible_gpus()
    marks = {f"cuda:{gpu.index} {gpu.name}": Quarantine(gpu.uuid, cache_folder()).reason() for gpu in gpus}
    if held := "; ".join(f"{name} is in quarantine {reason}" for name, reason in marks.items() if reason):
        return _check(
            "GPU", held, "", "no verdict there while it fails", "the next verdict asked for there tests it again"
        )
    costs = "everything runs on the CPU, with C++ candidates"
    if gpus and torch_build() == "CPU only":
        return _check(
            "GPU", f"{gpus[0].name}, but torch is built for the CPU only", "", costs, "pip install a CUDA build"
        )
    detail = ", ".join(f"cuda:{g.index} {g.name} ({g.memory_bytes >> 30} GiB, driver {g.driver})" for g in gpus)
    remedy = "use a machine with an NVIDIA GPU and its driver"
    return _check("GPU", None if gpus else "no NVIDIA GPU is visible", detail, costs, remedy)


def compiler() -> str | None:
    """The C++ compiler that would be used: $CXX, else g++ or clang++."""
    return shutil.which(os.environ.get("CXX") or "g++") or shutil.which("clang++")


def nvcc() -> str | None:
    """nvcc on the PATH or under $CUDA_HOME."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    return shutil.which("nvcc") or shutil.which("nvcc", path=f"{home}/bin")


def _tool(name: str, path: str | None, costs: str, remedy: str) -> Check:
    if path is None:
        return _check(name, "not found on the PATH", "", costs, remedy)
    reason, version = _version(path)
    return _check(name, reason, f"{path}: {version}", costs, remedy)


def _version(path: str) -> tuple[str | None, str]:
    """(why it does not run or None, its own words about its version)."""
    try:
        told = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return f"{path} does not run: {error}", ""
    lines = [line for line in told.splitlines() if line.strip()]
    release = next((line for line in lines if "release" in line), lines[0] if lines else "")
    return None, release.strip()


def _triton() -> Check:
    costs = "no Triton candidates, and torch.compile cannot generate code for a GPU"
    remedy = "comes with torch's CUDA builds; else pip install triton"
    try:
        return _check("Triton", None, metadata.version("triton"), costs, remedy)
    except metadata.PackageNotFoundError:
        return _check("Triton", "not installed", "", costs, remedy)


def _nsight() -> Check:
    from cuda_l1.evaluator.nsight import find_ncu

    costs = "prompts with a profile name kernels and their times, and no hardware counters"
    path = find_ncu()
    if path is None or not _is_for_administrators(DRIVER_SETTINGS):
        return _tool("Nsight Compute", path, costs, "install NVIDIA's package nsight-compute")
    reason = "the driver keeps the GPU's counters for administrators, and candidates run without their rights"
    remedy = "options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d/, then restart"
    return _check("Nsight Compute", reason, "", costs, remedy)


DRIVER_SETTINGS = Path("/proc/driver/nvidia/params")


def _is_for_administrators(settings: Path) -> bool:
    try:
        return "RmProfilingAdminOnly: 1" in settings.read_text()
    except OSError:
        return False


def _sandbox() -> Check:
    from cuda_l1.evaluator.guest import probe

    report = probe.probe()
    rung, refused = report["rung"], "; ".join(f"{name}: {why}" for name, why in report["refused"].items())
    costs = (
        "candidates run unconfined, and their verdicts are never exported"
        if rung == "R0"
        else "R1 confines files, signals and sockets; headlines of foreign code need R2 (namespaces)"
    )
    reason = f"{rung}; refused {refused}" if report["refused"] else None
    return _check("sandbox", reason, f"{rung}, the highest rung", costs, report["raise"])


def _disk() -> Check:
    from cuda_l1.evaluator.environment import cache_folder

    folder = Path(cache_folder())
    there = _nearest(folder)
    if not _may_be_filled(there):
        text = f"{there} cannot be written to"
        return _check("disk", text, "", "nothing can be judged", "name another folder by XDG_CACHE_HOME", needed=True)
    free = shutil.disk_usage(there).free
    low = free < ENOUGH_BYTES
    detail = f"{free >> 30} GiB free at {there}"
    return _check("disk", detail if low else None, detail, "builds of large candidates may fail", "free some space")


def _nearest(path: Path) -> Path:
    """The path itself, or the first of the folders above it that is there."""
    return next(each for each in (path, *path.parents) if each.exists())


def _may_be_filled(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK)


def _archive(where: str | None) -> Check:
    from cuda_l1.archive import Archive
    from cuda_l1.archive.database import describe, locate, sqlite_file

    costs, remedy = "no verdict can be stored", "name another one with --archive or CUDA_L1_ARCHIVE"
    try:
        url = locate(where)
        path = sqlite_file(url)
        if path is not None and not path.exists() and not _may_be_filled(_nearest(path)):
            return _check("archive", f"{_nearest(path)} cannot be written to", "", costs, remedy, needed=True)
        if path is not None and not path.exists():
            return _check("archive", None, f"{path}, made with the first verdict", costs, remedy)
        with Archive.open(where, create=False) as archive:
            tasks = sum(1 for _ in archive.tasks())
    except CudaL1Error as error:
        return _check("archive", str(error), "", costs, remedy, needed=True)
    return _check("archive", None, f"{describe(url).removeprefix('archive ')}, {many(tasks, 'task')}", costs, remedy)
