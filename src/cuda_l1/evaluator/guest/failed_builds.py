"""A library that could not be built is not built again in the same verdict: who goes on without it would else wait for
its compilers in each process, and on a GPU every other evaluator would wait for him.

Beside what could not be built lies a note with what the compilers said. The build step's notes come to the runners with
the rest of its caches. Nothing rests on them but time: a candidate that writes one itself has no library either way.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

MODULE = "torch.utils.cpp_extension"
FRESH_S = 600.0
"""So long a note counts: a compiler or a header may be another one tomorrow."""
_SOURCE = re.compile(r"^build [^:]+: \w+ (\S+)", re.MULTILINE)
"""What a line of a `build.ninja` reads."""
_OTHERWISE_ANOTHER_TIME = re.compile(
    r"signal \d|killed|bad_alloc|cannot allocate|out of memory|no space|quota|size limit|too many open|unavailable"
    r"|no such file|not found|cannot find",
    re.IGNORECASE,
)
"""In what compilers say that were short of something. What is missing is missed within a second or two anyway."""
_ASKS_FOR_THE_DEVICE = "native"
"""In commands that mean another thing where there is a device: the build step has none."""

Build = Callable[[str, bool, str], None]


def remember() -> None:
    """From now on this process, when it builds by PyTorch's loader of extensions, does not try what has just failed."""
    if (module := sys.modules.get(MODULE)) is not None:
        _watch(module)
    else:
        sys.meta_path.insert(0, _WhenImported())


class _WhenImported:
    """A finder that lets others find the module, and has it seen to once it is there: what it looks up when it is
    imported is for the candidate to set."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The module's own spec, with a loader that does so; None for all other names."""
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    """Loads the module from its file, and sees to it."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _watch(module)


def _watch(module: Any) -> None:
    build: Build | None = getattr(module, "_run_ninja_build", None)
    if build is not None:
        module._run_ninja_build = _remembering(build)


def _remembering(build: Build) -> Build:
    def run(build_directory: str, verbose: bool, error_prefix: str) -> None:
        note = _note(Path(build_directory))
        if note is not None and (kept := _read(note)) is not None:
            sys.audit("subprocess.Popen", "ninja", ["ninja", "-v"], build_directory, None)  # it set out to build
            _print(kept["printed"])
            raise RuntimeError(kept["said"])
        error, printed = _tried(lambda: build(build_directory, verbose, error_prefix), prints=verbose)
        if error is None:
            return
        if note is not None and not _OTHERWISE_ANOTHER_TIME.search(f"{error} {printed}"):
            with contextlib.suppress(OSError):
                note.write_text(json.dumps({"time": time.time(), "said": str(error), "printed": printed}))
        raise error

    return run


def _tried(build: Callable[[], None], *, prints: bool) -> tuple[RuntimeError | None, str]:
    """(why a build failed, if it did; what it printed, which is passed on when it is over)."""
    if not prints:  # what is said lies in the error
        return _error_of(build), ""
    sys.stdout.flush()
    where = os.dup(1)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        try:
            error = _error_of(build)
        finally:
            os.dup2(where, 1)
            os.close(where)
        file.seek(0)
        printed = file.read().decode(errors="replace")
    _print(printed)
    return error, printed


def _error_of(build: Callable[[], None]) -> RuntimeError | None:
    try:
        build()
    except RuntimeError as error:
        return error
    return None


def _print(text: str) -> None:
    data = text.encode()
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(1, data) :]


def _note(folder: Path) -> Path | None:
    """Of a build with these commands and sources; None where they cannot be read, or it asks what device there is."""
    try:
        commands = (folder / "build.ninja").read_text()
        sources = [os.path.join(folder, name) for name in sorted(set(_SOURCE.findall(commands)))]
        texts = [Path(name).read_bytes() for name in sources if not name.endswith(".o")]
    except (OSError, ValueError):
        return None
    if _ASKS_FOR_THE_DEVICE in commands:
        return None
    asked = hashlib.sha256(json.dumps([commands, *map(repr, texts)]).encode()).hexdigest()
    return folder / f"not-built-{asked[:16]}.json"


def _read(note: Path) -> dict[str, str] | None:
    try:
        kept = json.loads(note.read_text())
        is_fresh = 0.0 <= time.time() - float(kept["time"]) < FRESH_S
        return {"said": str(kept["said"]), "printed": str(kept["printed"])} if is_fresh else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
