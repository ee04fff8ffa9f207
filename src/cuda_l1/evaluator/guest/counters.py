"""The guest in which Nsight Compute watches a call: starts it, and hands on what it has written.

Its target runs below it in the same sandbox, so what it writes is told by a process that the candidate shares: it is
shown and decides nothing.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from .channel import Channel

MOST_BYTES = 1 << 20
LAST_WORDS = 4000


def main(channel: Channel, spec: dict[str, Any]) -> None:
    """Run the command that the parent sends; answer with its exit code, its table and its last words."""
    message, _ = channel.receive()
    done = subprocess.run(
        message["command"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    said = done.stdout[-LAST_WORDS:].decode(errors="replace")
    channel.send({"code": done.returncode, "table": _head(Path(message["table"])), "said": said})


def _head(path: Path) -> str:
    """The beginning of a file, empty where there is none."""
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES).decode(errors="replace")
    except OSError:
        return ""
