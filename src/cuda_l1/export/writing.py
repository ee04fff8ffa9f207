"""Texts of ours as files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from cuda_l1.errors import InfrastructureError, UsageError


def write_atomically(path: Path, text: str) -> None:
    """Whole or not at all: a reader never meets half a file. A link stays a link, and a device or a pipe what it is.

    Raises UsageError for a folder that is missing or not writable, InfrastructureError for a full disk.
    """
    if path.exists() and not path.is_file():
        _write_to_device(path, text)
        return
    path = path.resolve()
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        raise InfrastructureError(f"cannot write {path}: {error.strerror}") from error
    finally:
        Path(temporary).unlink(missing_ok=True)


def _write_to_device(path: Path, text: str) -> None:
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
