"""The build step: importing a candidate once, in a sandbox of its own and without a device, so that compilers run here.

What it writes into its cache directories is copied to the runners after this process has died.
"""

from __future__ import annotations

from typing import Any

import torch

from . import failed_builds
from .channel import Channel
from .load import load_module
from .runner import describe_error


def main(channel: Channel, spec: dict[str, Any]) -> None:
    """Import the file named by the parent, and say what came of it."""
    message, _ = channel.receive()
    torch.set_num_threads(1)
    try:
        failed_builds.remember()
        module = load_module(message["path"], "candidate")
    except BaseException as error:  # noqa: BLE001  the boundary to foreign code: SystemExit is a result too
        channel.send({"error": describe_error(error)})
        return
    if not hasattr(module, "ModelNew"):
        channel.send({"error": {"type": "MissingModelNew", "message": "the candidate defines no `ModelNew`"}})
        return
    channel.send({"ok": True})
