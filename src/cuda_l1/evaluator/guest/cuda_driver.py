"""One CUDA device by the driver's own calls: memory, events, launches, independent of torch.cuda.

The harness shares its interpreter with code that it times, and that code may patch torch.cuda or a CUDA package. So
the harness keeps its own way to the driver, bound once, when a `Driver` is made, before a candidate is loaded.
Importing this module needs no GPU; making a `Driver` does.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from .cuda_calls import CudaError, bind
from .device_memory import DeviceMemory

__all__ = ["CudaError", "DeviceAttributes", "DeviceMemory", "Driver", "Event", "Kernel"]

# Numbers from cuda.h.
_REGISTER_PORTABLE, _REGISTER_DEVICEMAP, _REGISTER_READ_ONLY = 1, 2, 8
_ATTRIBUTES = {
    "sm_count": 16,
    "l2_bytes": 38,
    "max_threads_per_block": 1,
    "max_threads_per_sm": 39,
    "read_only_host_register": 113,
    "posix_fd_handles": 103,
}
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
_JIT_INPUT_PTX = 1

_u64, _int, _ptr = ctypes.c_uint64, ctypes.c_int, ctypes.c_void_p


@dataclass(frozen=True)
class DeviceAttributes:
    """What the driver says of the device."""

    compute_capability: tuple[int, int]
    sm_count: int
    l2_bytes: int
    max_threads_per_block: int
    max_threads_per_sm: int
    read_only_host_register: int
    """1 where host memory that the process may only read can be registered."""
    posix_fd_handles: int
    """1 where device memory can be exported as a file descriptor."""


class Driver:
    """One device through libcuda, in the primary context, which is the one that torch uses.

    Make it in the thread that will use it, once per process, before foreign code is loaded, and with nothing of CUDA
    done before a fork. Pointers and streams are plain integers (stream 0 is the legacy default stream). Every call
    raises CudaError when the driver refuses; an error that an earlier launch left behind surfaces here too.

    These attributes are the bound driver functions themselves (Python adds under 1 us), for hot loops:
    `synchronize()`, `synchronize_stream(stream)`, `memset_async(ptr, byte, nbytes, stream)`,
    `memcpy_async(to_ptr, from_ptr, nbytes, stream)` (device to device), and `current_stream() -> int`, torch's.
    """

    def __init__(self, device_index: int = 0, *, library: str = "libcuda.so.1") -> None:
        self.device_index = device_index
        self.call = bind(library)
        self.call["cuInit"](0)
        self._device = self._get_int("cuDeviceGet", device_index)
        context = _ptr()
        self.call["cuDevicePrimaryCtxRetain"](ctypes.byref(context), self._device)
        self.make_current: Callable[[], object] = partial(self.call["cuCtxSetCurrent"], context.value)
        self.make_current()
        self.attributes = self._attributes()
        self.synchronize: Callable[[], object] = self.call["cuCtxSynchronize"]
        self.synchronize_stream: Callable[[int], object] = self.call["cuStreamSynchronize"]
        self.memset_async: Callable[[int, int, int, int], object] = self.call["cuMemsetD8Async"]
        self.memcpy_async: Callable[[int, int, int, int], object] = self.call["cuMemcpyDtoDAsync_v2"]
        raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", _no_cuda_in_torch)
        self.current_stream: Callable[[], int] = partial(raw_stream, device_index)

    def _get_int(self, name: str, *arguments: int) -> int:
        value = _int()
        self.call[name](ctypes.byref(value), *arguments)
        return value.value

    def _attributes(self) -> DeviceAttributes:
        def read(number: int) -> int:
            return self._get_int("cuDeviceGetAttribute", number, self._device)

        numbers = {name: read(number) for name, number in _ATTRIBUTES.items()}
        capability = (read(_CAPABILITY_MAJOR), read(_CAPABILITY_MINOR))
        return DeviceAttributes(capability, **numbers)

    def driver_version(self) -> tuple[int, int]:
        """The newest CUDA that this driver serves, (13, 0) for instance."""
        version = self._get_int("cuDriverGetVersion")
        return version // 1000, version % 1000 // 10

    # --- memory

    def allocate(self, nbytes: int) -> DeviceMemory:
        """New device memory, contents undefined, that can be exported. ValueError below 1 byte."""
        return DeviceMemory.create(self.call, self._device, nbytes)

    def import_memory(self, fd: int, nbytes: int, read_only: bool = False) -> DeviceMemory:
        """Map memory that another process exported; `nbytes` as there. The descriptor stays the caller's to close.

        Writing to a read-only mapping from a kernel is an illegal access, which poisons the context.
        """
        return DeviceMemory.attach(self.call, self._device, fd, nbytes, read_only=read_only)

    def register_host(self, address: int, nbytes: int, *, read_only: bool = False) -> int:
        """Pin host memory and map it into the device; returns the device's pointer to it.

        `read_only` is for pages that this process may only read, where `attributes.read_only_host_register` is true.
        """
        flags = _REGISTER_PORTABLE | _REGISTER_DEVICEMAP | (_REGISTER_READ_ONLY if read_only else 0)
        self.call["cuMemHostRegister_v2"](address, nbytes, flags)
        pointer = _u64()
        self.call["cuMemHostGetDevicePointer_v2"](ctypes.byref(pointer), address, 0)
        return pointer.value

    def unregister_host(self, address: int) -> None:
        """Undo `register_host`; nothing on the device may use the memory any more."""
        self.call["cuMemHostUnregister"](address)

    # --- events and kernels

    def event(self) -> Event:
        """A new timing event."""
        return Event(self)

    def assemble(self, ptx: bytes) -> bytes:
        """PTX text -> a cubin for this device, by the driver's own compiler. Raises CudaError where it refuses."""
        state, cubin, size = _ptr(), _ptr(), ctypes.c_size_t()
        self.call["cuLinkCreate_v2"](0, None, None, ctypes.byref(state))
        try:
            # One byte more than the text: the driver wants the terminating zero, which Python keeps behind all bytes.
            self.call["cuLinkAddData_v2"](state, _JIT_INPUT_PTX, ptx, len(ptx) + 1, b"gate.ptx", 0, None, None)
            self.call["cuLinkComplete"](state, ctypes.byref(cubin), ctypes.byref(size))
            return ctypes.string_at(cubin, size.value)  # ours; the driver's own goes with the link state
        finally:
            self.call["cuLinkDestroy"](state)

    def load_module(self, image: bytes) -> int:
        """Load a cubin for this device; returns a module handle that lives as long as the context."""
        module = _ptr()
        self.call["cuModuleLoadData"](ctypes.byref(module), image)
        return module.value or 0

    def kernel(self, module: int, name: str, arguments: Sequence[Any]) -> Kernel:
        """A kernel of a loaded module; `arguments` are ctypes values that the caller may change between launches."""
        function = _ptr()
        self.call["cuModuleGetFunction"](ctypes.byref(function), module, name.encode())
        return Kernel(self, function.value or 0, arguments)


class Event:
    """A timing event, independent of torch.cuda.Event; made by `Driver.event` and meant to be used again and again.

    `record(stream)` and `synchronize()` are bound driver calls.
    """

    __slots__ = ("__weakref__", "_elapsed_ms", "_elapsed_time", "handle", "record", "synchronize")

    def __init__(self, driver: Driver) -> None:
        handle = _ptr()
        driver.call["cuEventCreate"](ctypes.byref(handle), 0)
        self.handle = handle.value or 0
        self.record: Callable[[int], object] = partial(driver.call["cuEventRecord"], self.handle)
        self.synchronize: Callable[[], object] = partial(driver.call["cuEventSynchronize"], self.handle)
        self._elapsed_time = driver.call["cuEventElapsedTime"]
        self._elapsed_ms = ctypes.c_float()
        weakref.finalize(self, driver.call["cuEventDestroy_v2"], self.handle).atexit = False

    def elapsed_us(self, start: Event) -> float:
        """Microseconds from `start` to this event; both recorded and complete, else CudaError."""
        self._elapsed_time(ctypes.byref(self._elapsed_ms), start.handle, self.handle)
        return self._elapsed_ms.value * 1e3


class Kernel:
    """A kernel and the ctypes values that it is launched with; made by `Driver.kernel`."""

    __slots__ = ("_function", "_launch", "_occupancy", "_pointers", "_values")

    def __init__(self, driver: Driver, function: int, arguments: Sequence[Any]) -> None:
        self._function = function
        self._launch = driver.call["cuLaunchKernel"]
        self._occupancy = driver.call["cuOccupancyMaxActiveBlocksPerMultiprocessor"]
        self._values = tuple(arguments)
        self._pointers = (_ptr * len(self._values))(*(ctypes.addressof(value) for value in self._values))

    def launch(self, grid: int, block: int, stream: int) -> None:
        """Enqueue on `stream` with the values that the arguments have now."""
        self._launch(self._function, grid, 1, 1, block, 1, 1, 0, stream, self._pointers, None)

    def blocks_per_sm(self, block: int) -> int:
        """How many blocks of `block` threads one SM holds at a time."""
        blocks = _int()
        self._occupancy(ctypes.byref(blocks), self._function, block, 0)
        return blocks.value


def _no_cuda_in_torch(device_index: int) -> int:
    raise RuntimeError(
        f"this torch ({torch.__version__}) was built without CUDA: there is no stream of cuda:{device_index}"
    )
