"""The key that an endpoint asks for: from the environment or from a file, and from nowhere else.

It is held in memory and sent to its endpoint. It stands in no setting, record, log or message.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from cuda_l1.errors import UsageError
from cuda_l1.texts import read_text

KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"
OPENAI = "https://api.openai.com/v1"
"""Where the `openai` package asks when nothing else is said."""
NO_KEY = "none"
"""Sent where there is none: a server of one's own asks for none, and the `openai` package insists on one."""
SECRET_CHARACTERS = 8
"""A shorter key is no secret but a word that some server wants there, `EMPTY` say, and may stand in any text."""


def read_key(file: str | None = None, variable: str = KEY_VARIABLE) -> str:
    """The first line of `file`, else what the environment's `variable` holds; `NO_KEY` where $OPENAI_API_KEY is empty.

    Raises UsageError, which never shows the key: the file cannot be read or is empty, another variable is, or no header
    can carry what it holds.
    """
    if file is None:
        where, key = f"${variable}", os.environ.get(variable, "").strip()
        if not key and variable != KEY_VARIABLE:
            raise UsageError(f"key_env={variable}: ${variable} is not set; it should hold the key")
        key = key or NO_KEY
    else:
        where, key = f"key file {file}", _first_line(file)
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise UsageError(f"{where}: holds characters that no key has; it should be one word")
    return key


def key_for(url: str, *, file: str | None = None, variable: str | None = None) -> str:
    """The key for an address: of `file`, else of `variable`, else of $OPENAI_API_KEY where that is the address that it
    is for, else `NO_KEY`. Raises UsageError as `read_key` does."""
    if file is None and variable is None and not has_default_key(url):
        return NO_KEY
    return read_key(file, variable or KEY_VARIABLE)


def has_default_key(url: str) -> bool:
    """Whether $OPENAI_API_KEY is for this address: that of $OPENAI_BASE_URL, or OpenAI's own where it is not set."""
    return is_same_place(url, default_url())


def key_is_for() -> str:
    """Where $OPENAI_API_KEY is sent, for a person who wonders."""
    return f"${KEY_VARIABLE} is for {urlsplit(default_url()).netloc.rpartition('@')[2]} alone (${URL_VARIABLE})"


def default_url() -> str:
    """Where models are that nobody has given another address."""
    return os.environ.get(URL_VARIABLE) or OPENAI


def is_same_place(one: str, other: str) -> bool:
    """Whether two addresses have the same scheme, host and port; what is no address is nowhere."""
    return _origin(one) is not None and _origin(one) == _origin(other)


def _origin(url: str) -> tuple[str, str | None, int | None] | None:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return None


def _first_line(file: str) -> str:
    try:
        lines = read_text(Path(file).expanduser(), encoding="utf-8-sig").splitlines()
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
