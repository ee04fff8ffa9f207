"""RMS normalisation in C, built by the machine's compiler when this file is imported and called through ctypes. A
build that fails raises; there is no other way to compute the result.

The library is named by what it is made of and lies where extensions are kept, so that the next process finds it
built. It is written under another name first: two processes that build at once do not see each other's halves.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile

import torch
import torch.nn as nn

SOURCE = r"""
#include <math.h>

void rms_norm(const float *x, const float *weight, float *out, long rows, long size, float eps) {
    for (long row = 0; row < rows; row++) {
        const float *from = x + row * size;
        float *to = out + row * size;
        double squares = 0.0;
        for (long i = 0; i < size; i++) squares += (double)from[i] * from[i];
        const float scale = (float)(1.0 / sqrt(squares / size + eps));
        for (long i = 0; i < size; i++) to[i] = from[i] * scale * weight[i];
    }
}
"""
FLAGS = ("-O3", "-shared", "-fPIC")


def built(source: str) -> str:
    """The path of the library, compiled unless an earlier process has done so."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise RuntimeError("no C compiler was found")
    name = hashlib.sha256("".join((source, *FLAGS)).encode()).hexdigest()[:16]
    folder = os.path.join(os.environ.get("TORCH_EXTENSIONS_DIR") or tempfile.gettempdir(), f"rms_norm_{name}")
    library = os.path.join(folder, "rms_norm.so")
    if not os.path.exists(library):
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            text, fresh = os.path.join(work, "rms_norm.c"), os.path.join(work, "rms_norm.so")
            with open(text, "w", encoding="utf-8") as file:
                file.write(source)
            subprocess.run([compiler, *FLAGS, text, "-o", fresh, "-lm"], check=True)
            os.replace(fresh, library)
    return library


def loaded() -> ctypes.CDLL:
    library = ctypes.CDLL(built(SOURCE))
    pointer = ctypes.c_void_p
    library.rms_norm.argtypes = [pointer, pointer, pointer, ctypes.c_long, ctypes.c_long, ctypes.c_float]
    library.rms_norm.restype = None
    return library


LIBRARY = loaded()


class ModelNew(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        out = torch.empty_like(x)
        rows = x.numel() // x.shape[-1]
        LIBRARY.rms_norm(x.data_ptr(), self.weight.data_ptr(), out.data_ptr(), rows, x.shape[-1], 1e-6)
        return out
