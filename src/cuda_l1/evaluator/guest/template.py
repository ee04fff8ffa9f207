"""The fork template: imports torch and does nothing else, so that a guest starts in milliseconds.

It never runs a tensor operation, starts a thread or touches CUDA: a child of a process that did any of these hangs or
shares state with its siblings. It is exec'd with the allow-listed environment, because what a fork inherits cannot be
given back: /proc/self/environ keeps the text that the process was exec'd with.

    python -I -c BOOT FOLDER FD ROLE_FOLDER [MODULE...]

`FD` is one end of a `Channel`. Orders come in as `{"op": "spawn", ...}` with the descriptors
[control, channel, log, *extra]; each order forks a keeper (see `keeper.py`), which answers on `control`.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import os
import signal
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from . import keeper
from .channel import MAX_FDS, Channel, ChannelClosed

ROLES = ("judge", "runner", "build", "footprint", "counters")
BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from guest import template; del sys.path[0]; template.main()"
_LIGHT_MODULES = (
    "ast",
    "cmath",
    "ctypes",
    "dataclasses",
    "hashlib",
    "importlib.util",
    "inspect",
    "linecache",
    "mmap",
    "numpy.random",
    "random",
    "statistics",
    "subprocess",
    "tempfile",
    "traceback",
    "typing",
)


def main() -> None:
    """Serve orders until the parent closes its end."""
    channel = Channel.from_fd(int(sys.argv[2]))
    role_folder = Path(sys.argv[3]) if sys.argv[3] else None
    preload = sys.argv[4:]
    del sys.argv[1:]
    gc.disable()  # next to nothing of what is imported is ever garbage, and looking for it takes a sixth of the start
    torch = importlib.import_module("torch")
    for name in (*_LIGHT_MODULES, *preload):
        _preload(*name.split(":"))
    roles = load_roles(role_folder)
    gc.freeze()  # a collection in a child would otherwise copy every page that holds an object
    gc.enable()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers report by themselves; nothing is left to reap
    facts = {"torch": torch.__version__, "cuda": torch.version.cuda, "python": sys.version.split()[0]}
    channel.send({"event": "ready", "threads": _threads(), **facts})
    while True:
        try:
            order, fds = channel.receive(max_fds=MAX_FDS)
        except ChannelClosed:
            os._exit(0)
        threads = _threads()
        if threads != 1:
            channel.send({"event": "fault", "reason": f"the fork template has {threads} threads; it must have one"})
            os._exit(1)
        _spawn(order, fds, roles)


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))


def _preload(module: str, function: str | None = None) -> None:
    """Import a module, or call a function of it whose result it remembers."""
    imported = importlib.import_module(module)
    if function is not None:
        with contextlib.suppress(Exception):  # no compiler, say
            getattr(imported, function)()


def load_roles(folder: Path | None) -> dict[str, ModuleType]:
    """The role modules by name; `folder` adds the Python files in it (tests bring roles of their own)."""
    package = __package__ or "guest"
    roles = {
        role: importlib.import_module(f"{package}.{role}")
        for role in ROLES
        if importlib.util.find_spec(f"{package}.{role}")
    }
    for path in sorted(folder.glob("*.py")) if folder else ():
        spec = importlib.util.spec_from_file_location(f"role_{path.stem}", path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path}: not a Python module")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        roles[path.stem] = module
    return roles


def _spawn(order: dict[str, Any], fds: list[int], roles: dict[str, ModuleType]) -> None:
    """Fork a keeper for one order; the template keeps none of the order's descriptors."""
    if os.fork() == 0:
        keeper.keep(order, fds, roles)
    for fd in fds:
        os.close(fd)
