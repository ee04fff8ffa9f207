"""The lease of a device: whoever times on it is alone, all others that work on it share it.

File locks. The first is the device's: shared while something is checked, exclusive while something is timed. The
second is a turnstile: who times stands in it from the beginning of the wait to the end of the work, beside others who
time, and who only checks passes it when nobody stands there. So all who wait to time do so one after the other, and
then all checks begin together, in place of a check between any two. A check of our own that takes long gives way in
between (`give_way`), unless somebody wants the device whole. A third lock says that, and a fourth that somebody gives
way: who wants it whole waits for those first, and for nothing else meanwhile.

Of a CPU each core has its own, and a lease takes those of its cores: evaluators on disjoint cores never meet.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from cuda_l1.errors import InfrastructureError


class DeviceLease:
    """`with DeviceLease("cpu", folder, cores=(0, 1)): ...` to time, `shared=True` for other work; processes wait, or
    say so first.

    The kernel gives the locks back when their holder dies, however it dies. Nobody waits in a circle: turnstiles are
    entered in the order of the cores, then the devices; who passes one to check finds nobody timing there.
    """

    def __init__(
        self,
        device: str,
        folder: Path,
        on_wait: Callable[[str], None] | None = None,
        *,
        shared: bool = False,
        whole: bool = False,
        cores: Sequence[int] = (),
    ) -> None:
        """`device`: `cpu` or a GPU's uuid. `folder`: the cache directory. `on_wait` gets one line before waiting.
        `whole`, of one that is not shared: nobody is to be in the middle of anything, so nobody gives way to it.
        `cores`: those of a CPU that are worked on; none: the device is one thing."""
        own = sorted(set(cores))
        self._names = [f"{device} core {core}" for core in own] or [device]
        stems = [f"{device}-{core}" for core in own] or [device.replace("/", "_")]
        self.paths = [folder / "leases" / f"{stem}.lock" for stem in stems]
        self._turnstiles = [folder / "leases" / f"{stem}.turn" for stem in stems]
        self._whole = [folder / "leases" / f"{stem}.whole" for stem in stems]
        self._resting = [folder / "leases" / f"{stem}.rest" for stem in stems]
        self._on_wait, self._shared, self._is_whole = on_wait, shared, whole and not shared
        self._fds: list[int] = []
        self._held = ExitStack()
        self.waited_s = 0.0
        """Seconds until the lease was there, the last time that it was taken."""
        self.began_in_company = False
        """Whether others held the device when it was taken."""

    def __enter__(self) -> Self:
        """Take the lease; waiting can be interrupted. Raises `InfrastructureError` when a file cannot be made."""
        begin = time.monotonic()
        how, turn_how = (fcntl.LOCK_SH, fcntl.LOCK_EX) if self._shared else (fcntl.LOCK_EX, fcntl.LOCK_SH)
        with ExitStack() as passed, ExitStack() as held:
            turns = [_opened(path, passed if self._shared else held) for path in self._turnstiles]
            fds = [_opened(path, held) for path in self.paths]
            if self._is_whole:
                for path in self._whole:
                    fcntl.flock(_opened(path, held), fcntl.LOCK_SH)
                with ExitStack() as until_nobody_rests:
                    for path in self._resting:
                        fcntl.flock(_opened(path, until_nobody_rests), fcntl.LOCK_EX)
            self._wait([(turn, turn_how) for turn in turns], fds)
            self.began_in_company = not all(_try(fd, fcntl.LOCK_EX) for fd in fds)
            if self._shared or self.began_in_company:
                self._wait([(fd, how) for fd in fds], fds)
            self._held = held.pop_all()
        self._fds = fds
        if not self._shared:
            for fd in fds:
                os.pwrite(fd, str(os.getpid()).encode(), 0)
        self.waited_s = time.monotonic() - begin
        return self

    def is_free(self) -> bool:
        """Whether the lease could be had now without waiting."""
        for paths, how in ((self._turnstiles, fcntl.LOCK_EX), (self.paths, fcntl.LOCK_SH)):
            for path in paths:
                with ExitStack() as stack:
                    if not _try(_opened(path, stack), how):
                        return False
        return True

    def is_wanted(self) -> bool:
        """Whether somebody waits to time on what this shared lease holds, and would do beside work that rests."""
        with ExitStack() as stack:
            if not self._shared or self._is_wanted_whole():
                return False
            return not all(_try(_opened(path, stack), fcntl.LOCK_EX) for path in self._turnstiles)

    def give_way(self) -> None:
        """Give a shared lease back until those who wait to time have done so, unless somebody wants the device whole
        by now: he waits until nobody is in the middle of something."""
        waited_s = self.waited_s
        with ExitStack() as resting:
            for path in self._resting:
                fcntl.flock(_opened(path, resting), fcntl.LOCK_SH)
            if self._is_wanted_whole():
                return
            self._held.close()
            self.__enter__()
        self.waited_s, self.began_in_company = waited_s, True

    def _is_wanted_whole(self) -> bool:
        with ExitStack() as stack:
            return not all(_try(_opened(path, stack), fcntl.LOCK_EX) for path in self._whole)

    def has_company(self) -> bool:
        """Whether others held the device when this lease began, or hold it or wait for it now. To be asked at the end:
        the lease may be lost by it."""
        if not self._shared or self.began_in_company:
            return self._shared
        with ExitStack() as stack:
            turns = [_opened(path, stack) for path in self._turnstiles]
            return not all(_try(fd, fcntl.LOCK_EX) for fd in (*turns, *self._fds))

    def _wait(self, wanted: Sequence[tuple[int, int]], device_fds: Sequence[int]) -> None:
        """Take the locks, (descriptor, how) each, in order, a line before the first that is not there at once."""
        has_told = False
        for name, (fd, how), device_fd in zip(self._names, wanted, device_fds, strict=True):
            if _try(fd, how):
                continue
            if self._on_wait and not has_told:
                holder = os.pread(device_fd, 32, 0).decode(errors="replace")
                who = f"process {holder} is timing on it" if holder else "other evaluations work on it"
                self._on_wait(f"waiting for {name}: {who}")
                has_told = True
            fcntl.flock(fd, how)

    def __exit__(self, *_: object) -> None:
        if not self._shared:
            for fd in self._fds:
                os.ftruncate(fd, 0)
        self._held.close()
        self._fds = []


def _opened(path: Path, stack: ExitStack) -> int:
    """A descriptor that `stack` closes."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise InfrastructureError(f"{path}: the device lease cannot be taken: {error.strerror}") from error
    stack.callback(os.close, fd)
    return fd


def _try(fd: int, how: int) -> bool:
    """Whether the lock could be taken at once."""
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
