"""Ctrl-C that does not get lost.

Python raises KeyboardInterrupt wherever the main thread happens to be. In a callback of the garbage collector's, or in
a library that catches everything, it vanishes, and a long command goes on as if nobody had asked.
"""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType

_asked = threading.Event()


def listen() -> None:
    """From now on Ctrl-C is remembered besides being raised. A handler of somebody else's stays."""
    _asked.clear()
    in_main = threading.current_thread() is threading.main_thread()
    if in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _handle)
        others = sys.unraisablehook
        sys.unraisablehook = lambda lost: None if lost.exc_type is KeyboardInterrupt else others(lost)  # it is not lost


def _handle(number: int, frame: FrameType | None) -> None:
    _asked.set()
    raise KeyboardInterrupt


def pass_on() -> None:
    """Between two steps of long work: raises a KeyboardInterrupt that was asked for since `listen` and got lost."""
    if _asked.is_set():
        raise KeyboardInterrupt
