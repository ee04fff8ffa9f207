"""The command line: one small file per command. `--help` of any of them loads no torch."""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    """Entry point of `cuda-l1`. Ctrl-C while a command is still loading is one line, too."""
    _make_writable()
    try:
        from cuda_l1.cli.app import app
        from cuda_l1.cli.boundary import let_go_of_stdout

        try:
            app()
        finally:
            let_go_of_stdout()  # also behind --help
    except KeyboardInterrupt:
        sys.stderr.write("cuda-l1: interrupted; nothing was begun\n")
        sys.exit(130)


def _make_writable() -> None:
    """Streams that can be written to whatever started us: closed ones, and terminals that know no box or umlaut."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for as long as the process lives
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
