"""The Python that compiles the C++ of a candidate and loads it."""

from __future__ import annotations

LOADER = r'''
import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile


def compile_cpp(source):
    """The shared library compiled from `source`, from the cache where it was compiled on this kind of machine before.

    OpenMP is taken from the library that torch has already loaded, so that both share one set of threads; where there
    is none, the compiler's own is linked. Raises RuntimeError with the compiler's message.
    """
    compiler = shutil.which(os.environ.get("CXX", "g++")) or shutil.which("c++") or "g++"
    flags = ["-O3", "-march=native", "-std=c++17", "-fopenmp", "-fno-math-errno", "-fno-trapping-math", "-fPIC"]
    flags += ["-ffp-contract=fast", "-shared", "-w", "-Wno-psabi"]
    parts = [source, *flags, compiler, _processor(), str(os.path.getmtime(compiler) if os.path.exists(compiler) else 0)]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    cache = os.environ.get("CUDA_L1_HOME") or os.path.join(os.path.expanduser("~"), ".cache", "cuda-l1")
    folder = os.path.join(os.environ.get("TORCH_EXTENSIONS_DIR") or cache, "fused_" + key)
    library = os.path.join(folder, "fused.so")
    if not os.path.exists(library):
        os.makedirs(folder, exist_ok=True)
        _build(source, [compiler, *flags], folder, library)
    return ctypes.CDLL(library)


def _build(source, command, folder, library):
    """Compile in a temporary folder beside the library and move it into place in one step."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        text, made = os.path.join(work, "fused.cpp"), os.path.join(work, "fused.so")
        with open(text, "w") as file:
            file.write(source)
        message = ""
        for libraries in (["-nodefaultlibs", "-lm", "-lc", "-Wl,-z,now"], ["-lm"]):
            done = subprocess.run([*command, text, "-o", made, *libraries], capture_output=True, text=True)
            message = done.stderr
            if done.returncode == 0 and _loads(made):
                os.replace(made, library)
                return
        raise RuntimeError("the C++ compiler failed: " + message[:2000])


def _loads(path):
    try:
        ctypes.CDLL(path)
    except OSError:
        return False
    return True


def _processor():
    """What -march=native depends on."""
    try:
        with open("/proc/cpuinfo") as file:
            lines = [line for line in file if line.startswith(("model name", "flags", "Features", "CPU part"))]
    except OSError:
        return ""
    return "".join(sorted(set(lines)))


def laid_out(tensor, strides):
    """A copy of `tensor` with the strides that the kernels were written for."""
    return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype).copy_(tensor)
'''
