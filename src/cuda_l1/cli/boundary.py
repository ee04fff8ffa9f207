"""Where errors of ours end: one line on stderr and the exit code, never a traceback for a person's mistake.

0 ok, 1 nothing accepted or a check failed, 2 usage, 3 infrastructure, 130 interrupted.
"""

from __future__ import annotations

import errno
import functools
from collections.abc import Callable
from typing import ParamSpec

import typer

from cuda_l1 import interruption
from cuda_l1.cli.output import Output, let_go_of_streams
from cuda_l1.errors import CudaL1Error, InfrastructureError, remedy

P = ParamSpec("P")

NOTHING_ACCEPTED = 1
INTERRUPTED = 130


def command(kept: str) -> Callable[[Callable[P, int | None]], Callable[P, None]]:
    """Makes a function that returns its exit code (None: 0) a command. `kept` is what Ctrl-C tells the person."""

    def decorate(function: Callable[P, int | None]) -> Callable[P, None]:
        @functools.wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> None:
            raise typer.Exit(exit_code(lambda: function(*args, **kwargs), kept))

        return run

    return decorate


def exit_code(function: Callable[[], int | None], kept: str) -> int:
    """What `function` returns, or the exit code of what it raises, after one line about it."""
    try:
        with interruption.remembered():
            code = function() or 0
            Output.flush()
            return code
    except CudaL1Error as error:
        Output.error(" ".join(str(error).split()))
        return error.exit_code
    except KeyboardInterrupt:
        Output.error(f"interrupted; {kept}")
        return INTERRUPTED
    except BrokenPipeError:
        return 0  # whoever read stdout has left
    except ImportError as error:
        if "torch" not in str(error):
            raise
        Output.error(f"torch cannot be loaded ({error}); `cuda-l1 doctor` says what is there")
        return InfrastructureError.exit_code
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        full = "" if where or error.errno != errno.ENOSPC else "; `df` says which disk is full: free some space there"
        Output.error(f"{where}{error.strerror or error}{full}{remedy(error)}")
        return InfrastructureError.exit_code
    finally:
        let_go_of_streams()
