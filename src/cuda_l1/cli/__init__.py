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
        from cuda_l1.cli.output import let_go_of_streams

        try:
            app()
        except SystemExit as end:
            _leave_a_launcher(end.code)
            raise
        finally:
            let_go_of_streams()  # also behind --help
    except KeyboardInterrupt:
        sys.stderr.write("cuda-l1: interrupted; nothing was begun\n")
        sys.exit(130)
    except OSError as error:  # --help and --version, on a disk that is full
        sys.stderr.write(f"cuda-l1: the output cannot be written: {error.strerror or error}\n")
        sys.exit(3)


def _leave_a_launcher(code: object) -> None:
    """A process that `torchrun` started beside the main one ends at once when all is done: it has written nothing that
    is still to be flushed, and Python's own way out kills threads of torch in the midst of C++, which at times aborts
    the process and with it the whole launch."""
    if code in (None, 0) and "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("RANK", "0") != "0":
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _make_writable() -> None:
    """Streams that can be written to whatever started us: closed ones, and terminals that know no box or umlaut."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for as long as the process lives
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
