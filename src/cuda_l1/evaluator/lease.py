"""The lease of a device: at most one evaluation on this machine times on it at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Self

from cuda_l1.errors import InfrastructureError


class DeviceLease:
    """An exclusive lock on a file, `with DeviceLease("cpu", folder): ...`; other processes wait, or say so first.

    The kernel gives the lock back when its holder dies, however it dies.
    """

    def __init__(self, device: str, folder: Path, on_wait: Callable[[str], None] | None = None) -> None:
        """`device`: `cpu` or a GPU's uuid. `folder`: the cache directory. `on_wait` gets one line before waiting."""
        self.path = folder / "leases" / f"{device.replace('/', '_')}.lock"
        self._device, self._on_wait = device, on_wait
        self._fd = -1

    def __enter__(self) -> Self:
        """Take the lease; waiting can be interrupted. Raises `InfrastructureError` when the file cannot be made."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise InfrastructureError(f"{self.path}: the device lease cannot be taken: {error.strerror}") from error
        try:
            self._lock(fd)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd
        os.ftruncate(fd, 0)
        os.pwrite(fd, str(os.getpid()).encode(), 0)
        return self

    def _lock(self, fd: int) -> None:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if self._on_wait:
                holder = os.pread(fd, 32, 0).decode(errors="replace") or "another process"
                self._on_wait(f"waiting for {self._device}: process {holder} is timing on it")
            fcntl.flock(fd, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
        self._fd = -1
