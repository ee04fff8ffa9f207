"""Which rungs this machine allows, found by trying each one in a short-lived child; needs no torch."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from . import landlock, namespaces, sandbox
from .kernel import no_new_privileges

_REPORT_BYTES = 1 << 16
_PARTS = {"user": namespaces.NEW_USER, "network": namespaces.NEW_NET, "ipc": namespaces.NEW_IPC} | {
    "mount": namespaces.NEW_MOUNT,
    "pid": namespaces.NEW_PID,
}
_SYSCTLS = (  # one that forbids user namespaces, its forbidding value, and the value that allows them
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ("kernel/unprivileged_userns_clone", "0", "1"),
    ("user/max_user_namespaces", "0", "15000"),
)


def probe() -> dict[str, Any]:
    """What the sandbox can do here.

    `rung`: the highest that works; `refused`: rung to reason; `raise`: the one command for the next higher rung, or
    ""; `parts`: name to "ok" or to the reason of the refusal; `uid`: the user id that guests end with.
    """
    report: dict[str, Any] = {"rung": "R0", "refused": {}, "raise": "", "uid": os.getuid()}
    for rung in sandbox.RUNGS[1:]:
        result = _try_rung(rung)
        if "uid" in result:
            report |= {"rung": rung, "uid": result["uid"]}
        else:
            report["refused"][rung] = result["reason"]
            report["raise"] = report["raise"] or advice(rung)
    report["parts"] = {"landlock": in_child(_landlock), "seccomp": in_child(_seccomp)} | {
        f"{name} namespace": in_child(partial(_unshare, flag)) for name, flag in _PARTS.items()
    }
    return report


def highest_rung() -> tuple[str, dict[str, str]]:
    """The highest rung that works and, for those that do not, why; the quick part of `probe`."""
    refused: dict[str, str] = {}
    for rung in reversed(sandbox.RUNGS[1:]):
        result = _try_rung(rung)
        if "uid" in result:
            return rung, refused
        refused[rung] = result["reason"]
    return "R0", refused


def advice(rung: str) -> str:
    """The one command that makes this machine allow `rung`."""
    if rung == "R1":
        return "use Linux 5.19 or newer with landlock in the kernel's `lsm=` list (a container: run it on such a host)"
    for name, forbidding, allowing in _SYSCTLS:
        path = Path("/proc/sys", name)
        if path.exists() and path.read_text().strip() == forbidding:
            return f"sudo sysctl -w {name.replace('/', '.')}={allowing}"
    options = (
        "--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined"
    )
    return f"docker run --cap-add SYS_ADMIN {options} ..."


def _try_rung(rung: str) -> dict[str, Any]:
    """Enter `rung` in a grandchild, as a guest does: {"uid"} or {"reason"}."""
    work_dir = tempfile.mkdtemp(prefix="cuda-l1-probe-")
    order: dict[str, Any] = {
        "rung": rung,
        "work_dir": work_dir,
        "mount_at": "/tmp/cuda-l1-work",
        "read_paths": [],
        "device": "cpu",
    }
    order |= {"work_bytes": 1 << 20, "private_paths": [], "loopback": False}

    def attempt() -> dict[str, Any]:
        sandbox.prepare(order)
        return fork_and_ask(lambda: sandbox.enter(order))

    try:
        return fork_and_ask(attempt)
    finally:
        shutil.rmtree(work_dir, ignore_errors=True)


def in_child(part: Callable[[], str]) -> str:
    """`part()` in a child: its text, or the reason why it was refused."""
    result = fork_and_ask(lambda: {"text": part()})
    return str(result.get("text", result.get("reason")))


def fork_and_ask(attempt: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `attempt` returns in a forked child, or {"reason": ...} when it raised `OSError` or died."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, json.dumps(attempt()).encode())
        except OSError as error:
            os.write(write, json.dumps({"reason": error.strerror or str(error)}).encode())
        finally:
            os.kill(os.getpid(), signal.SIGKILL)  # nothing of the caller's may run at exit, whatever was raised
            os._exit(1)  # process 1 of a PID namespace ignores its own signals
    os.close(write)
    with open(read, "rb") as pipe:
        text = pipe.read(_REPORT_BYTES)
    os.waitpid(child, 0)
    result: dict[str, Any] = json.loads(text) if text else {"reason": "the child died without a word"}
    return result


def _landlock() -> str:
    return f"ok (ABI {landlock.abi()})"


def _seccomp() -> str:
    from . import seccomp

    no_new_privileges()
    seccomp.restrict(confine_signals=False)
    return "ok"


def _unshare(flag: int) -> str:
    namespaces.unshare("unshare", flag)
    return "ok"
