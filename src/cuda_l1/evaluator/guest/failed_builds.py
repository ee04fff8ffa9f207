"""A library that could not be built is not built again: who goes on without it would else wait for its compilers in
each process, and on a GPU every other evaluator would wait for him.

The build step leaves beside what it could not build what the compilers said; the runners get it with the rest of its
caches. Nothing rests on it but time: a candidate that writes such a note itself has no library either way.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

NOTE = "not-built.json"
_SOURCE = re.compile(r"^build [^:]+: \w+ (\S+)", re.MULTILINE)
"""What a line of a `build.ninja` reads."""
_KILLED = re.compile(r"\bsignal\b|killed|cannot allocate|no space left|out of memory", re.IGNORECASE)
"""In what compilers say that might have come to an end another time."""

Build = Callable[[str, bool, str], None]


def remember(candidate: str) -> None:
    """From now on this process builds what the text in the file `candidate` hands to PyTorch's loader of extensions
    only where nobody has failed at it before. To be called before the candidate is loaded."""
    if b"cpp_extension" not in Path(candidate).read_bytes():
        return  # its import takes longer than a small module's
    from torch.utils import cpp_extension

    module: Any = cpp_extension
    build: Build | None = getattr(module, "_run_ninja_build", None)
    if build is not None:
        module._run_ninja_build = _remembering(build)


def _remembering(build: Build) -> Build:
    def run(build_directory: str, verbose: bool, error_prefix: str) -> None:
        note = Path(build_directory, NOTE)
        asked = _asked(Path(build_directory))
        if (said := _read(note, asked)) is not None:
            sys.audit("subprocess.Popen", "ninja", ["ninja", "-v"], build_directory, None)  # it set out to build
            raise RuntimeError(said)
        try:
            build(build_directory, False, error_prefix)  # what is printed elsewhere is in no exception
        except RuntimeError as error:
            said = str(error)
            if verbose:
                sys.stdout.write(f"{said}\n")
            if asked and not _KILLED.search(said):
                note.write_text(json.dumps({"asked": asked, "said": said}))
            raise

    return run


def _asked(folder: Path) -> str:
    """A digest of the commands and the sources of a build; "" where they cannot be read."""
    try:
        commands = (folder / "build.ninja").read_text()
        sources = [os.path.join(folder, name) for name in sorted(set(_SOURCE.findall(commands)))]
        texts = [Path(name).read_bytes() for name in sources if not name.endswith(".o")]
    except OSError:
        return ""
    return hashlib.sha256(json.dumps([commands, *map(repr, texts)]).encode()).hexdigest()


def _read(note: Path, asked: str) -> str | None:
    try:
        kept = json.loads(note.read_text())
        return str(kept["said"]) if asked and kept["asked"] == asked else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
