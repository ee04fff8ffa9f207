"""Reading a text that a person names, which may lead to what never ends: a device, or a pipe."""

from __future__ import annotations

import errno
import os
from pathlib import Path

MOST = 1 << 26
"""Characters of a source, a recipe, a template and the like."""


def read_text(path: Path, *, most: int = MOST, encoding: str = "utf-8") -> str:
    """The text of a file of at most so many characters. Raises OSError, also for a longer one, and
    UnicodeDecodeError."""
    with path.open(encoding=encoding) as file:
        text = file.read(most + 1)
    if len(text) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return text
