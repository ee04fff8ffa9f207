"""The key that an endpoint asks for: from the environment or from a file, and from nowhere else.

It is held in memory and sent to its endpoint. It stands in no setting, record, log or message.
"""

from __future__ import annotations

import os
from pathlib import Path

from cuda_l1.errors import UsageError

KEY_VARIABLE = "OPENAI_API_KEY"
NO_KEY = "none"
"""Sent where there is none: a server of one's own asks for none, and the `openai` package insists on one."""
SECRET_CHARACTERS = 8
"""A shorter key is no secret but a word that some server wants there, `EMPTY` say, and may stand in any text."""


def read_key(file: str | None = None) -> str:
    """The first line of `file`, else what $OPENAI_API_KEY holds, else `NO_KEY`.

    Raises UsageError, which never shows the key: the file cannot be read or is empty, or no header can carry it.
    """
    if file is None:
        where, key = f"${KEY_VARIABLE}", os.environ.get(KEY_VARIABLE, "").strip() or NO_KEY
    else:
        where, key = f"key file {file}", _first_line(file)
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise UsageError(f"{where}: holds characters that no key has; it should be one word")
    return key


def _first_line(file: str) -> str:
    try:
        lines = Path(file).expanduser().read_text("utf-8").splitlines()
    except UnicodeDecodeError:
        raise UsageError(f"key file {file}: is not a text file; it should hold the key, alone") from None
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"key file {file}: cannot be read ({reason})") from None
    key = lines[0].strip() if lines else ""
    if not key:
        raise UsageError(f"key file {file}: its first line is empty; it should hold the key")
    return key


def without_key(text: str, key: str) -> str:
    """`text` with the key blotted out: servers like to repeat it."""
    return text if len(key) < SECRET_CHARACTERS else text.replace(key, "***")
