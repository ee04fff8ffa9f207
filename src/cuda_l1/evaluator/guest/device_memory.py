"""Device memory that crosses processes as a file descriptor, by the driver's virtual-memory calls."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

import torch

from .cuda_calls import CudaError

Calls = dict[str, Any]

_as_tensor = torch.as_tensor

# Numbers from cuda.h.
_ALLOCATION_PINNED = 1
_LOCATION_DEVICE = 1
_HANDLE_POSIX_FD = 1
_ACCESS_READ, _ACCESS_READ_WRITE = 1, 3

_u64, _size, _int = ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int


class AllocationProp(ctypes.Structure):
    """CUmemAllocationProp with its CUmemLocation unfolded."""

    _fields_ = (
        ("type", _int),
        ("requested_handle_types", _int),
        ("location_type", _int),
        ("location_id", _int),
        ("win32_metadata", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


class AccessDesc(ctypes.Structure):
    """CUmemAccessDesc with its CUmemLocation unfolded."""

    _fields_ = (("location_type", _int), ("location_id", _int), ("flags", _int))


class DeviceMemory:
    """Device memory mapped into this process. Made by `Driver.allocate` and `Driver.import_memory`.

    `nbytes` as asked for, `mapped_bytes` rounded up to the device's granularity (2 MiB as a rule), `address` on the
    device. Unmapped by `close`, or when neither this object nor a tensor over it is left.
    """

    def __init__(self, call: Calls, device: int, handle: int, nbytes: int, *, read_only: bool = False) -> None:
        """Takes over the allocation `handle`: it is released here if mapping fails."""
        self.nbytes = nbytes
        self.device = device
        self._call = call
        self._handle = handle
        try:
            self.mapped_bytes = _rounded(call, device, nbytes)
            self.address = _map(call, device, handle, self.mapped_bytes, read_only)
        except (CudaError, ValueError):
            call["cuMemRelease"](handle)
            raise
        self._close = weakref.finalize(self, _unmap, call, handle, self.address, self.mapped_bytes)
        self._close.atexit = False  # the context may be gone by then, and a process that ends gives all memory back

    @classmethod
    def create(cls, call: Calls, device: int, nbytes: int) -> DeviceMemory:
        """New memory on `device`. Raises ValueError below 1 byte, CudaError."""
        handle = _u64()
        prop = _exportable(device)
        call["cuMemCreate"](ctypes.byref(handle), _rounded(call, device, nbytes), ctypes.byref(prop), 0)
        return cls(call, device, handle.value, nbytes)

    @classmethod
    def attach(cls, call: Calls, device: int, fd: int, nbytes: int, *, read_only: bool) -> DeviceMemory:
        """The memory behind a descriptor, which stays the caller's. Raises CudaError."""
        handle = _u64()
        call["cuMemImportFromShareableHandle"](ctypes.byref(handle), fd, _HANDLE_POSIX_FD)
        return cls(call, device, handle.value, nbytes, read_only=read_only)

    def export_fd(self) -> int:
        """A new descriptor that stands for this memory; the caller closes it after sending it."""
        fd = _int(-1)
        self._call["cuMemExportToShareableHandle"](ctypes.byref(fd), self._handle, _HANDLE_POSIX_FD, 0)
        return fd.value

    def tensor(self) -> torch.Tensor:
        """All `nbytes` as a 1-D uint8 CUDA tensor; it keeps this mapping alive."""
        return _as_tensor(_View(self), device=f"cuda:{self.device}")

    def close(self) -> None:
        """Wait for the device, unmap, release. Tensors over it must not be used any more. Closing twice is harmless."""
        self._close()


class _View:
    """What torch reads to wrap foreign device memory; the tensor holds on to this object, and so to the mapping."""

    def __init__(self, memory: DeviceMemory) -> None:
        self._memory = memory
        # torch refuses the read-only flag; for a read-only mapping the device itself enforces it.
        self.__cuda_array_interface__ = {
            "shape": (memory.nbytes,),
            "typestr": "|u1",
            "data": (memory.address, False),
            "version": 3,
        }


def _exportable(device: int) -> AllocationProp:
    return AllocationProp(
        type=_ALLOCATION_PINNED,
        requested_handle_types=_HANDLE_POSIX_FD,
        location_type=_LOCATION_DEVICE,
        location_id=device,
    )


def _rounded(call: Calls, device: int, nbytes: int) -> int:
    """`nbytes` rounded up to the granularity that memory can be created and mapped in."""
    if nbytes < 1:
        raise ValueError(f"device memory of {nbytes} bytes: at least 1 is needed")
    granularity = _size()
    call["cuMemGetAllocationGranularity"](ctypes.byref(granularity), ctypes.byref(_exportable(device)), 0)
    return -(-nbytes // granularity.value) * granularity.value


def _map(call: Calls, device: int, handle: int, size: int, read_only: bool) -> int:
    """Give an allocation an address; nothing stays behind when that fails."""
    reserved = _u64()
    call["cuMemAddressReserve"](ctypes.byref(reserved), size, 0, 0, 0)
    address = reserved.value
    try:
        call["cuMemMap"](address, size, 0, handle, 0)
        try:
            flags = _ACCESS_READ if read_only else _ACCESS_READ_WRITE
            desc = AccessDesc(location_type=_LOCATION_DEVICE, location_id=device, flags=flags)
            call["cuMemSetAccess"](address, size, ctypes.byref(desc), 1)
        except CudaError:
            call["cuMemUnmap"](address, size)
            raise
    except CudaError:
        call["cuMemAddressFree"](address, size)
        raise
    return address


def _unmap(call: Calls, handle: int, address: int, size: int) -> None:
    call["cuCtxSynchronize"]()  # cuMemUnmap does not wait for kernels that still use the memory
    call["cuMemUnmap"](address, size)
    call["cuMemAddressFree"](address, size)
    call["cuMemRelease"](handle)
