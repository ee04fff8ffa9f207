"""The driver functions that the harness calls, with their types, bound by ctypes and checked on every call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

_NO_DRIVER = -1

_u64, _size, _int, _uint, _ptr = ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p
# The names that a program compiled against cuda.h links to: some carry a version. Out-parameters are `_ptr`.
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (_uint,),
    "cuDriverGetVersion": (_ptr,),
    "cuDeviceGet": (_ptr, _int),
    "cuDeviceGetAttribute": (_ptr, _int, _int),
    "cuDevicePrimaryCtxRetain": (_ptr, _int),
    "cuCtxSetCurrent": (_ptr,),
    "cuCtxSynchronize": (),
    "cuStreamSynchronize": (_ptr,),
    "cuMemGetAllocationGranularity": (_ptr, _ptr, _int),
    "cuMemCreate": (_ptr, _size, _ptr, _u64),
    "cuMemExportToShareableHandle": (_ptr, _u64, _int, _u64),
    "cuMemImportFromShareableHandle": (_ptr, _ptr, _int),
    "cuMemAddressReserve": (_ptr, _size, _size, _u64, _u64),
    "cuMemMap": (_u64, _size, _size, _u64, _u64),
    "cuMemSetAccess": (_u64, _size, _ptr, _size),
    "cuMemUnmap": (_u64, _size),
    "cuMemAddressFree": (_u64, _size),
    "cuMemRelease": (_u64,),
    "cuMemHostRegister_v2": (_ptr, _size, _uint),
    "cuMemHostGetDevicePointer_v2": (_ptr, _ptr, _uint),
    "cuMemHostUnregister": (_ptr,),
    "cuMemsetD8Async": (_u64, ctypes.c_ubyte, _size, _ptr),
    "cuMemcpyDtoDAsync_v2": (_u64, _u64, _size, _ptr),
    "cuEventCreate": (_ptr, _uint),
    "cuEventRecord": (_ptr, _ptr),
    "cuEventSynchronize": (_ptr,),
    "cuEventElapsedTime": (_ptr, _ptr, _ptr),
    "cuEventDestroy_v2": (_ptr,),
    "cuLinkCreate_v2": (_uint, _ptr, _ptr, _ptr),
    "cuLinkAddData_v2": (_ptr, _int, _ptr, _size, ctypes.c_char_p, _uint, _ptr, _ptr),
    "cuLinkComplete": (_ptr, _ptr, _ptr),
    "cuLinkDestroy": (_ptr,),
    "cuModuleLoadData": (_ptr, ctypes.c_char_p),
    "cuModuleGetFunction": (_ptr, _ptr, ctypes.c_char_p),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": (_ptr, _ptr, _int, _size),
    "cuLaunchKernel": (_ptr, *(_uint,) * 7, _ptr, _ptr, _ptr),
}


class CudaError(RuntimeError):
    """A driver call failed. `name` is the function, `code` the CUresult, `text` the driver's words for it."""

    def __init__(self, name: str, code: int, text: str) -> None:
        super().__init__(f"{name}: {text} ({code})")
        self.name = name
        self.code = code
        self.text = text


def bind(library: str) -> dict[str, Any]:
    """Load the driver; name -> function that takes plain integers, bytes and ctypes references.

    Each call raises CudaError where the driver answers anything but success; so does this function where there is no
    driver, or one too old to have every function.
    """
    try:
        loaded = ctypes.CDLL(library)
        text = _error_text(loaded)
        return {name: _checked(loaded, name, text) for name in _SIGNATURES}
    except (OSError, AttributeError) as missing:
        raise CudaError(library, _NO_DRIVER, f"no usable NVIDIA driver: {missing}") from None


def _checked(library: ctypes.CDLL, name: str, text: Callable[[int], str]) -> Any:
    function = library[name]
    function.argtypes = _SIGNATURES[name]
    function.restype = _int

    def check(code: Any, _function: Any, _arguments: Any) -> Any:
        if code:
            raise CudaError(name, code, text(code))
        return code

    function.errcheck = check
    return function


def _error_text(library: ctypes.CDLL) -> Callable[[int], str]:
    """CUresult -> "CUDA_ERROR_OUT_OF_MEMORY: out of memory"."""
    describers = [library["cuGetErrorName"], library["cuGetErrorString"]]
    for describer in describers:
        describer.argtypes = (_int, _ptr)

    def text(code: int) -> str:
        words = ctypes.c_char_p()
        parts = []
        for describer in describers:
            if describer(code, ctypes.byref(words)) == 0 and words.value:
                parts.append(words.value.decode(errors="replace"))
        return ": ".join(parts) or "unknown error"

    return text
