"""Texts: reading one that a person names, which may lead to what never ends (a device, or a pipe), and counting."""

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


def many(number: int, noun: str) -> str:
    """`1 kernel`, `2 kernels`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def read_text(path: Path, *, most: int = MOST, encoding: str = "utf-8", errors: str = "strict") -> str:
    """The text of a file of at most so many characters, also of one that gzip has packed. Raises OSError, also for a
    longer one and for one whose packing is damaged or cut off, and UnicodeDecodeError."""
    text, is_cut_off = read_up_to_a_cut(path, most=most, encoding=encoding, errors=errors)
    if is_cut_off:
        raise _damaged(path)
    return text


def read_up_to_a_cut(path: Path, *, most: int, encoding: str, errors: str) -> tuple[str, bool]:
    """As `read_text`, and whether the file's packing ends before its end: then the text is what stands before."""
    with path.open("rb") as file:
        unpacked = _Unpacked(fileobj=file) if file.peek(2)[:2] == _GZIP else None
        try:
            with io.TextIOWrapper(unpacked or file, encoding, errors) as characters:
                text = characters.read(most + 1)
        except (gzip.BadGzipFile, zlib.error) as error:
            raise _damaged(path) from error
    if len(text) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return text, unpacked is not None and unpacked.is_cut_off


class _Unpacked(gzip.GzipFile):
    """Ends where the packing is cut off, and says so."""

    is_cut_off = False

    def read1(self, size: int = -1) -> bytes:
        try:
            return super().read1(size)
        except EOFError:
            self.is_cut_off = True
            return b""


def _damaged(path: Path) -> OSError:
    return OSError(errno.EIO, "its gzip packing is damaged or cut off", str(path))
