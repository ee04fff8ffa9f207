"""The sandbox of a guest, rung by rung. See docs/threat-model.md for what each one stops.

    R0  nothing
    R1  no capabilities, no_new_privs, Landlock, seccomp: needs no privilege
    R2  R1 plus network, IPC, mount and PID namespaces

`prepare` runs in the keeper, `enter` in the guest. A sandbox order is a JSON object:
`rung`, `work_dir` (path on the host), `mount_at` (where R2 shows it), `read_paths`, `private_paths` (never readable as
a whole, whatever `sys.path` says), `device` (`cpu` hides the GPU), `work_bytes`, `loopback` (R2 only: its processes may
talk to each other through sockets; it sees no file that could be somebody else's).
"""

from __future__ import annotations

import glob
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterable
from typing import Any

from . import landlock, namespaces, privileges, seccomp
from .kernel import no_new_privileges

RUNGS = ("R0", "R1", "R2")

_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"),
    *("/proc", "/sys"),
    # Of /etc only what loaders, compilers and the C library read: a superuser's guest could read all of it.
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime"),
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/os-release", "/etc/OpenCL", "/etc/nvidia"),
)
_TOOLS = ("cc", "gcc", "c++", "g++", "clang", "clang++", "ld", "nvcc", "ninja")
_PLAIN_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def prepare(order: dict[str, Any]) -> None:
    """What must happen before the guest is forked. Raises `OSError` when the machine refuses it."""
    if order["rung"] == "R2":
        namespaces.begin()


def enter(order: dict[str, Any]) -> dict[str, Any]:
    """Confine this process for good; returns `{"uid": the user id it ends with, "forks": what its keeper answers them
    at, a descriptor, or None}`.

    Raises `OSError`, naming the part, when the machine refuses something that the rung promises.
    """
    if order["rung"] == "R0":
        return {"uid": os.getuid(), "forks": None}
    work_dir, loopback = order["work_dir"], order["loopback"]
    if loopback and order["rung"] != "R2":
        raise OSError("sockets of its own are for a guest at R2")
    readable = [*software_paths(order["private_paths"]), *order["read_paths"]]
    devices = gpu_devices() if order["device"] == "cuda" else []
    shared = []
    if order["rung"] == "R2":
        namespaces.complete(work_dir, order["mount_at"], readable, order["work_bytes"], loopback=loopback)
        work_dir = order["mount_at"]
        shared = ["/dev/shm"]
    to_nobody = (
        privileges.can_become_nobody()
        and privileges.reachable_by_all(work_dir)
        and privileges.open_to_all([*readable, *devices])
    )
    privileges.drop_capabilities(nobody_gets=work_dir if to_nobody else None)
    no_new_privileges()
    own = "/proc" if loopback else f"/proc/{os.getpid()}"
    version = landlock.abi()
    if version < landlock.NEEDED_ABI:
        raise OSError(f"Landlock ABI {version} is too old, {landlock.NEEDED_ABI} is needed")
    landlock.restrict(
        [
            *((path, landlock.READ) for path in (*_SYSTEM, *readable)),
            ("/dev", landlock.LIST),
            *((path, landlock.DEVICE) for path in (*_PLAIN_DEVICES, *devices)),
            *((path, landlock.WORK) for path in (work_dir, *shared)),
            # With a /proc of its own, a guest of several processes may let each name its threads.
            *([(own, landlock.OWN_PROCESS)] if order["device"] == "cuda" else []),
        ],
        version,
        network=loopback,
    )
    own_pids = order["rung"] == "R2"
    forks = seccomp.restrict(
        confine_signals=not own_pids and version < landlock.SCOPED_SIGNALS_ABI,
        cuda=order["device"] == "cuda",
        loopback=loopback,
        ask=True,
    )
    return {"uid": os.getuid(), "forks": forks}


def software_paths(private_paths: Iterable[str]) -> list[str]:
    """What this interpreter, torch, CUDA, compilers and these scripts are read from.

    A folder that holds one of `private_paths` (an editable install of a whole home, say) is left out: the guest could
    read everything in it.
    """
    found = {sys.prefix, sys.base_prefix, os.path.realpath(sys.executable), os.path.dirname(os.path.abspath(__file__))}
    torch = importlib.util.find_spec("torch")
    found.update(torch.submodule_search_locations or () if torch else ())
    found.update(glob.glob("/opt/*cuda*"), glob.glob("/opt/nvidia*"))
    found.update(os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name))
    private = [os.path.realpath(path) for path in (*private_paths, "/")]
    for folder in (*sys.path, *_library_folders(), *_tool_prefixes()):
        real = os.path.realpath(folder)
        if os.path.exists(real) and not any(path == real or path.startswith(real + "/") for path in private):
            found.add(real)
    return sorted(found)


def _library_folders() -> list[str]:
    return [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if os.path.isabs(folder)]


def _tool_prefixes() -> list[str]:
    """The installations behind the compilers: `/opt/gcc` for `/opt/gcc/bin/gcc`.

    The other folders of `PATH` stay closed: a launcher that can be started, but not what it launches, is worse than
    one that is passed over.
    """
    names = [*_TOOLS, *(os.environ[name] for name in ("CC", "CXX") if os.environ.get(name))]
    tools = filter(None, map(shutil.which, names))
    return [os.path.dirname(os.path.dirname(os.path.realpath(tool))) for tool in tools]


def gpu_devices() -> list[str]:
    """The device files of the NVIDIA driver."""
    return sorted(glob.glob("/dev/nvidia*"))
