"""Compile one CUDA file at run time with the NVRTC that came with torch."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import torch


class NvrtcError(RuntimeError):
    """NVRTC is missing or refused the source; the message holds its log."""


def library_paths() -> list[str]:
    """Where torch's own NVRTC may lie, the version that torch was built with first, then what the loader finds."""
    torch_dir = Path(torch.__file__).parent
    found = [*torch_dir.glob("lib/libnvrtc*.so*"), *torch_dir.parent.glob("nvidia/*/lib/libnvrtc.so.*")]
    major = (torch.version.cuda or "").partition(".")[0]
    kept = sorted(str(path) for path in found if "builtins" not in path.name)
    kept.sort(key=lambda path: f".so.{major}" not in path)
    return [*kept, "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]


def compile_cubin(source: str, capability: tuple[int, int], *, libraries: list[str] | None = None) -> bytes:
    """CUDA C++ without includes -> a cubin for exactly that compute capability. Raises NvrtcError."""
    nvrtc = _load(library_paths() if libraries is None else libraries)
    program = ctypes.c_void_p()
    _ok(nvrtc, nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"gate.cu", 0, None, None))
    try:
        options = (ctypes.c_char_p * 1)(b"--gpu-architecture=sm_%d%d" % capability)
        code = nvrtc.nvrtcCompileProgram(program, 1, options)
        if code:
            raise NvrtcError(
                _read(nvrtc, program, "ProgramLog").rstrip(b"\0").decode(errors="replace") or f"code {code}"
            )
        return _read(nvrtc, program, "CUBIN")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _load(libraries: list[str]) -> Any:
    for path in libraries:
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise NvrtcError("no libnvrtc found beside torch or by the loader")


def _ok(nvrtc: Any, code: int) -> None:
    if code:
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise NvrtcError(nvrtc.nvrtcGetErrorString(code).decode())


def _read(nvrtc: Any, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _ok(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    _ok(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(program, text))
    return text.raw
