"""The words that judge and runner share: two pages of host memory, one written by each side.

A *sequence* numbers the driven calls of one runner; it only goes up during the life of the pages, so a word never has
to be cleared and "at least n" is the only question asked of one. The judge's page is sealed: the runner, and whatever
it loads, can map it for reading only, so nothing in there can open the gate or start a call in the judge's name.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import platform
import threading
import time
from dataclasses import dataclass
from typing import ClassVar, Literal

# x86-64 keeps loads in order and stores in order, and CPython reads or writes an aligned word in one instruction: that
# is all a flag needs. Elsewhere a barrier stands before a store and after a load.
_ORDERED = platform.machine() in ("x86_64", "AMD64")
_turn = threading.Lock()
_turn.acquire()

_FUTURE_WRITE = 0x0010  # F_SEAL_FUTURE_WRITE, which fcntl names only from Python 3.13


def _barrier() -> None:
    """Release, then acquire a lock that is always held: on Arm these compile to instructions that nothing may cross."""
    _turn.release()
    _turn.acquire()


@dataclass(frozen=True)
class Word:
    """A place in the control pages: whose page, and the byte offset in it."""

    writer: Literal["judge", "runner"]
    offset: int


def _word(writer: Literal["judge", "runner"], line: int) -> Word:
    """128 bytes apart: 64-byte lines are fetched in pairs, and a poll must not slow the store to another word."""
    return Word(writer, 128 * line)


class Control:
    """Both pages, mapped. `create` makes the judge's end, `attach` the runner's from the two descriptors.

    `get` and `put` move 32-bit signed integers; `get_ns` reads a 64-bit time.
    """

    GO: ClassVar = _word("judge", 0)  # the runner may make call n: its inputs are there
    GATE_OPEN: ClassVar = _word("judge", 1)  # gates up to n may leave
    ABORT: ClassVar = _word("judge", 2)  # not 0: stop
    SEED: ClassVar = _word("judge", 3)  # what call n's random numbers follow from
    ENQUEUED: ClassVar = _word("runner", 0)  # call n has returned to the runner
    DONE: ClassVar = _word("runner", 1)  # call n is finished, says the runner
    GATE_RESIDENT: ClassVar = _word("runner", 2)  # written by the GPU: every block of gate n runs
    GATE_EXPIRED: ClassVar = _word("runner", 3)  # written by the GPU: gate n left at its limit, unopened
    RELEASE_NS: ClassVar = _word("runner", 4)  # written by the GPU, 64 bits: device time when the last gate leaves
    FINISH_NS: ClassVar = _word("runner", 5)  # written by the GPU, 64 bits: device time of the last `Gate.finish`
    FINISHED: ClassVar = _word("runner", 6)  # written by the GPU: the work of call n is finished
    DELIVERED: ClassVar = _word("runner", 7)  # the outputs of call n are in the judge's memory
    PAGE_BYTES: ClassVar = mmap.PAGESIZE

    def __init__(self, judge_fd: int, runner_fd: int, *, sealed: bool) -> None:
        """Map both descriptors and keep them; the judge's page for reading only when `sealed`."""
        judge_access = mmap.ACCESS_READ if sealed else mmap.ACCESS_WRITE
        self.sealed = sealed
        self.fds: tuple[int, int] = (judge_fd, runner_fd)
        self._maps = {
            "judge": mmap.mmap(judge_fd, self.PAGE_BYTES, access=judge_access),
            "runner": mmap.mmap(runner_fd, self.PAGE_BYTES, access=mmap.ACCESS_WRITE),
        }
        self._words = {side: memoryview(page).cast("i") for side, page in self._maps.items()}
        self._times = memoryview(self._maps["runner"]).cast("q")

    @classmethod
    def create(cls, *, seal: bool = True) -> Control:
        """New pages, all zero. `seal=False` only where a GPU cannot register host memory for reading alone.

        `fds` holds (judge page, runner page), to be sent to the runner. Raises OSError when memory is short.
        """
        judge_fd = os.memfd_create("judge-words", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        runner_fd = os.memfd_create("runner-words", os.MFD_CLOEXEC)
        for fd in (judge_fd, runner_fd):
            os.ftruncate(fd, cls.PAGE_BYTES)
        control = cls(judge_fd, runner_fd, sealed=False)  # mapped before the seal, so this end keeps its right to write
        if seal:
            seals = _FUTURE_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
            fcntl.fcntl(judge_fd, fcntl.F_ADD_SEALS, seals)
        return control

    @classmethod
    def attach(cls, judge_fd: int, runner_fd: int) -> Control:
        """The runner's end of pages made by `create` in another process; takes over both descriptors."""
        sealed = bool(fcntl.fcntl(judge_fd, fcntl.F_GET_SEALS) & _FUTURE_WRITE)
        return cls(judge_fd, runner_fd, sealed=sealed)

    def close(self) -> None:
        """Unmap the pages and close the descriptors. A GPU that registered them must have let go of them first."""
        for view in (*self._words.values(), self._times):
            view.release()
        for page in self._maps.values():
            page.close()
        for fd in self.fds:
            os.close(fd)

    def address(self, writer: Literal["judge", "runner"]) -> int:
        """Host address of the page that `writer` writes, valid until `close`."""
        return _address(self._maps[writer])

    def get(self, word: Word) -> int:
        value = self._words[word.writer][word.offset >> 2]
        if not _ORDERED:
            _barrier()
        return value

    def put(self, word: Word, value: int) -> None:
        """Whoever reads `value` sees everything written before it. TypeError for the judge's words in a runner."""
        if not _ORDERED:
            _barrier()
        self._words[word.writer][word.offset >> 2] = value

    def get_ns(self, word: Word) -> int:
        """RELEASE_NS or FINISH_NS: nanoseconds on the device's clock."""
        return self._times[word.offset >> 3]

    def wait(self, word: Word, at_least: int, seconds: float) -> bool:
        """Spin until the word is at least that; False when `seconds` pass or ABORT is set first."""
        deadline = time.perf_counter() + seconds
        while self.get(word) < at_least:
            if time.perf_counter() > deadline or self.get(self.ABORT):
                return self.get(word) >= at_least
        return True


class _Buffer(ctypes.Structure):
    """Py_buffer: only the first field is read."""

    _fields_ = (("address", ctypes.c_void_p), ("rest", ctypes.c_byte * 256))


def _address(page: mmap.mmap) -> int:
    """Where a mapping lies. `from_buffer` gives this too, but refuses mappings that cannot be written."""
    buffer = _Buffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(page), ctypes.byref(buffer), 0)
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))
    return int(buffer.address or 0)
