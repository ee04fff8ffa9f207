"""Reading a text that a person names, which may lead to what never ends: a device, or a pipe."""

from __future__ import annotations

import errno
import gzip
import io
import os
import zlib
from pathlib import Path

MOST = 1 << 26
"""Characters of a source, a recipe, a template and the like."""
_GZIP = b"\x1f\x8b"


def read_text(path: Path, *, most: int = MOST, encoding: str = "utf-8", errors: str = "strict") -> str:
    """The text of a file of at most so many characters, also of one that gzip has packed. Raises OSError, also for a
    longer one and for one whose packing is damaged, and UnicodeDecodeError."""
    with path.open("rb") as file:
        packed = file.peek(2)[:2] == _GZIP
        try:
            with io.TextIOWrapper(gzip.GzipFile(fileobj=file) if packed else file, encoding, errors) as characters:
                text = characters.read(most + 1)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise OSError(errno.EIO, "its gzip packing is damaged or cut off", str(path)) from error
    if len(text) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return text
