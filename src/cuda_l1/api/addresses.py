"""Addresses of language models, as people give them."""

from __future__ import annotations

from urllib.parse import urlsplit

from cuda_l1.endpoint import KEY_VARIABLE
from cuda_l1.errors import UsageError


def check_address(option: str, url: str) -> None:
    """Raises UsageError for what is no address of an endpoint, or holds a key. `option` is where it was given."""
    try:
        parts = urlsplit(url)
        complete = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1)
    except ValueError:
        complete = False
    if not complete:
        raise UsageError(f"{option} {url}: is not the address of an endpoint; give e.g. http://localhost:8000/v1")
    if "@" in parts.netloc or parts.query:
        raise UsageError(f"{option}: leave keys out of the address, it is kept in records; ${KEY_VARIABLE} is sent")
