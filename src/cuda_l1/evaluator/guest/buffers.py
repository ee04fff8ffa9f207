"""Shared memory between judge and runner: a memfd on a CPU, an allocation of the driver's virtual-memory API on a GPU.

The judge creates a buffer and hands its file descriptor over; the runner maps it. Both see a run of bytes, out of which
`bytes_at` cuts tensors that own their storage (a candidate that looks at `x.untyped_storage()` sees its own tensor).
"""

from __future__ import annotations

import contextlib
import mmap
import os
from typing import Any, Protocol

import torch

ALIGNMENT = 256


class Buffer(Protocol):
    """A run of bytes that two processes see."""

    nbytes: int

    def bytes_at(self, offset: int, nbytes: int) -> torch.Tensor: ...
    def fileno(self) -> int: ...


class _Descriptor:
    """A file descriptor that is closed with its owner: an open one keeps the memory behind it."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.number)


class HostBuffer:
    """A memfd mapped shared and writable; both sides may write, so the judge keeps copies of what it must trust."""

    def __init__(self, nbytes: int, descriptor: int | None = None) -> None:
        self.nbytes = max(nbytes, ALIGNMENT)
        if descriptor is None:
            descriptor = os.memfd_create("cuda-l1", os.MFD_CLOEXEC)
            os.ftruncate(descriptor, self.nbytes)
        self._descriptor = _Descriptor(descriptor)
        self._map = mmap.mmap(descriptor, self.nbytes)

    def bytes_at(self, offset: int, nbytes: int) -> torch.Tensor:
        """`nbytes` from `offset` on, as a uint8 tensor with a storage of its own. Raises ValueError outside."""
        if nbytes == 0:
            return torch.empty(0, dtype=torch.uint8)
        return torch.frombuffer(self._map, dtype=torch.uint8, count=nbytes, offset=offset)

    def fileno(self) -> int:
        return self._descriptor.number


class _DeviceRange:
    """What `torch.as_tensor` needs to see memory that torch did not allocate (CUDA array interface, version 3)."""

    def __init__(self, address: int, nbytes: int, owner: Any) -> None:
        self.owner = owner
        self.__cuda_array_interface__ = {"shape": (nbytes,), "typestr": "|u1", "data": (address, False), "version": 3}


class DeviceBuffer:
    """Device memory that crosses namespaces as a POSIX file descriptor."""

    def __init__(self, driver: Any, nbytes: int, descriptor: int | None = None) -> None:
        wanted = max(nbytes, ALIGNMENT)
        self._memory = driver.allocate(wanted) if descriptor is None else driver.import_memory(descriptor, wanted)
        self.nbytes = wanted
        self._device = f"cuda:{driver.device_index}"
        self._descriptor = None if descriptor is None else _Descriptor(descriptor)

    def bytes_at(self, offset: int, nbytes: int) -> torch.Tensor:
        """`nbytes` from `offset` on, as a uint8 CUDA tensor with a storage of its own. Raises ValueError outside."""
        if nbytes == 0:
            return torch.empty(0, dtype=torch.uint8, device=self._device)
        if offset < 0 or nbytes < 0 or offset + nbytes > self.nbytes:
            raise ValueError(f"bytes {offset} to {offset + nbytes} lie outside a buffer of {self.nbytes}")
        return torch.as_tensor(_DeviceRange(self._memory.address + offset, nbytes, self._memory), device=self._device)

    def fileno(self) -> int:
        if self._descriptor is None:
            self._descriptor = _Descriptor(self._memory.export_fd())
        return self._descriptor.number


def create(nbytes: int, driver: Any | None) -> Buffer:
    """A new buffer of at least `nbytes`: device memory when a driver is given, host memory otherwise."""
    return DeviceBuffer(driver, nbytes) if driver is not None else HostBuffer(nbytes)


def attach(descriptor: int, nbytes: int, driver: Any | None) -> Buffer:
    """The other end's buffer, from the descriptor it sent."""
    return DeviceBuffer(driver, nbytes, descriptor) if driver is not None else HostBuffer(nbytes, descriptor)
