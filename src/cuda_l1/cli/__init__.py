"""The command line: one small file per command. `--help` of any of them loads no torch."""

from __future__ import annotations

import time

STARTED = time.monotonic()
"""When the command began: a time budget covers loading it, too."""


def main() -> None:
    """Entry point of `cuda-l1`."""
    from cuda_l1.cli.app import app

    app()
