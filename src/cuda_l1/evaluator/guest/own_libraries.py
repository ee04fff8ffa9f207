"""Whether a candidate that set out to build or load a library of its own came to have one.

What it sets out to do is told by the interpreter's audit events, which come before the deed, and by the finder that is
asked last for a package; what came of it, by what is mapped into its process, and by PyTorch's own counts of what it
compiled.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import torch

_INSTALLED = {sys.prefix, sys.base_prefix, str(Path(torch.__file__).resolve().parents[1])}
SOFTWARE = ("/usr/", "/lib", "/opt/", *(f"{folder}/" for folder in _INSTALLED))
"""What the paths of libraries begin with that are no candidate's own."""
_COMPILERS_OF_TORCH = ("/torch/_inductor/", "/triton/")
"""Part of the paths of code that compiles for a candidate, and tries out what compilers can do."""
_FRAMES = 200
_PACKAGES = {"cupy", "cutlass", "numba", "pycuda", "tilelang", "triton"}
"""What kernels are written with. Who looks for one in vain has no kernel of that kind."""


class OwnLibraries:
    """What is tried from now on; made before a candidate is loaded, once in a process: audit hooks stay."""

    def __init__(self) -> None:
        work_dir = f"{os.getcwd()}/"
        self._software = tuple(folder for folder in SOFTWARE if not work_dir.startswith(folder))
        self._before = self._mapped()
        self._tried = ""
        sys.addaudithook(self._note)
        sys.meta_path.append(_AskedInVain(self._note_package))

    def missing(self) -> str:
        """What was tried last, where the process holds no library of its own; "" where nothing was, or where another
        process may hold it."""
        if frames := uncompiled_frames():
            return f"compiling {frames} functions with torch.compile"
        if not self._tried or self._before is None or _has_children():
            return ""
        now = self._mapped()
        return self._tried if now is not None and now <= self._before else ""

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in ("ctypes.dlopen", "subprocess.Popen", "os.system"):
            return
        with contextlib.suppress(Exception):  # an exception of a hook would be the candidate's
            if (tried := deed(event, arguments, self._software)) and not _for_torch(sys._getframe(1)):
                self._tried = tried

    def _note_package(self, name: str) -> None:
        with contextlib.suppress(Exception):
            frame: FrameType | None = sys._getframe(2)
            while frame is not None and _is_of_the_import_system(frame.f_code.co_filename):
                frame = frame.f_back
            if frame is not None and not frame.f_code.co_filename.startswith(self._software):
                self._tried = f"importing {name}"

    def _mapped(self) -> set[str] | None:
        """Files that are nobody else's software and whose code is mapped; None where that cannot be read."""
        try:
            lines = Path("/proc/self/maps").read_text().splitlines()
        except OSError:
            return None
        entries = [line.split(maxsplit=5) for line in lines]
        files = {entry[5] for entry in entries if len(entry) == 6 and "x" in entry[1]}
        return {file for file in files if file[0] == "/" and not file.startswith(self._software)}


class _AskedInVain:
    """The last finder: it is asked for what no other one has found, and finds nothing."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Note the name of a package that kernels are written with."""
        if name in _PACKAGES:
            self._note(name)


def _is_of_the_import_system(file: str) -> bool:
    return file.startswith("<frozen importlib") or "/importlib/" in file


def uncompiled_frames() -> int:
    """Functions of which `torch.compile` was to make compiled ones, where it made none: with its errors suppressed they
    run as they are."""
    utils = sys.modules.get("torch._dynamo.utils")
    try:
        frames = dict(utils.counters["frames"]) if utils is not None else {}
        return int(frames.get("total", 0)) if not frames.get("ok") else 0
    except (AttributeError, TypeError, ValueError):
        return 0


def deed(event: str, arguments: tuple[Any, ...], software: tuple[str, ...] = SOFTWARE) -> str:
    """What an event is the beginning of; "" for what makes or loads no library of a candidate's own.

    A name without a folder is looked up among the system's libraries.
    """
    if event == "ctypes.dlopen":
        name = os.fsdecode(arguments[0] or "")
        return f"loading {name}" if "/" in name and not name.startswith(software) else ""
    command = arguments[0] if event == "os.system" else arguments[1]
    words = [command] if isinstance(command, str | bytes) else list(command)
    line = " ".join(map(os.fsdecode, words))
    return f"running `{line[:80]}`" if "-shared" in line or Path(line.split()[0]).name == "ninja" else ""


def _for_torch(frame: FrameType | None) -> bool:
    for _ in range(_FRAMES):
        if frame is None:
            return False
        if any(part in frame.f_code.co_filename for part in _COMPILERS_OF_TORCH):
            return True
        frame = frame.f_back
    return True


def _has_children() -> bool:
    try:
        return any(path.read_text().strip() for path in Path("/proc/self/task").glob("*/children"))
    except OSError:
        return True
