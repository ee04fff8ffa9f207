"""Ctrl-C that does not get lost.

Python raises KeyboardInterrupt wherever the main thread happens to be. In a callback of the garbage collector's, or in
a library that catches everything, it vanishes, and a long command goes on as if nobody had asked.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_asked = threading.Event()


@contextmanager
def remembered() -> Iterator[None]:
    """Inside, Ctrl-C is remembered besides being raised. A handler of somebody else's stays in place."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    others = sys.unraisablehook
    sys.unraisablehook = lambda lost: None if lost.exc_type is KeyboardInterrupt else others(lost)  # it is not lost
    signal.signal(signal.SIGINT, _handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = others
        _asked.clear()


def _handle(number: int, frame: FrameType | None) -> None:
    _asked.set()
    raise KeyboardInterrupt


def pass_on() -> None:
    """Between two steps of long work: raises the KeyboardInterrupt that came inside `remembered` and got lost."""
    if _asked.is_set():
        raise KeyboardInterrupt
