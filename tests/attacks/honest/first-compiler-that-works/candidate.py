"""A recurrence in C, built by the first of several compilers that succeeds; exceptions of the others are passed over.
When none works the import fails: no exception leads to another way of computing the result."""

import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch
import torch.nn as nn

SOURCE = r"""
void recurrence(const float *x, const float *decay, float *out, long steps, long size) {
    for (long i = 0; i < size; i++) out[i] = x[i];
    for (long step = 1; step < steps; step++) {
        const float *before = out + (step - 1) * size, *from = x + step * size;
        float *to = out + step * size;
        for (long i = 0; i < size; i++) to[i] = before[i] * decay[i] + from[i];
    }
}
"""
COMPILERS = (
    ("nvc", "-fast"),
    ("icx", "-O3", "-fp-model=precise"),
    ("gcc", "-O3"),
    ("cc", "-O2"),
)


def build(path: str) -> None:
    """Compile to `path` with the first compiler that can. Raises RuntimeError that names what each one said."""
    said = []
    for compiler, *flags in COMPILERS:
        command = [compiler, *flags, "-shared", "-fPIC", "-x", "c", "-", "-o", path]
        try:
            subprocess.run(command, input=SOURCE, text=True, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            said.append(f"{compiler}: {error}")
            continue
        return
    raise RuntimeError("; ".join(said))


def loaded() -> ctypes.CDLL:
    name = hashlib.sha256(SOURCE.encode()).hexdigest()[:16]
    folder = os.path.join(os.environ.get("TORCH_EXTENSIONS_DIR") or tempfile.gettempdir(), f"recurrence_{name}")
    library = os.path.join(folder, "recurrence.so")
    if not os.path.exists(library):
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            fresh = os.path.join(work, "recurrence.so")
            build(fresh)
            os.replace(fresh, library)
    found = ctypes.CDLL(library)
    found.recurrence.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long] * 2
    found.recurrence.restype = None
    return found


LIBRARY = loaded()


class ModelNew(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.decay = nn.Parameter(torch.rand(size) * 0.5 + 0.4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        out = torch.empty_like(x)
        LIBRARY.recurrence(x.data_ptr(), self.decay.data_ptr(), out.data_ptr(), *x.shape)
        return out
