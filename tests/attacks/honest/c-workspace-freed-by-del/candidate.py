"""Medians by selection in C, in a workspace that is allocated natively and grows on demand. `__del__` of the workspace
frees that memory and does nothing else; every result is complete when its call returns."""

import ctypes
import os
import subprocess
import tempfile

import torch
import torch.nn as nn

SOURCE = r"""
#include <stdlib.h>
#include <string.h>

/* The k-th smallest of n values, which are reordered: Hoare's selection. */
static float select_kth(float *v, long n, long k) {
    long low = 0, high = n - 1;
    while (low < high) {
        const float pivot = v[(low + high) / 2];
        long i = low, j = high;
        while (i <= j) {
            while (v[i] < pivot) i++;
            while (pivot < v[j]) j--;
            if (i <= j) {
                const float swapped = v[i];
                v[i++] = v[j];
                v[j--] = swapped;
            }
        }
        if (k <= j) high = j;
        else if (k >= i) low = i;
        else break;
    }
    return v[k];
}

void *workspace_grow(void *old, long bytes) { return realloc(old, bytes); }
void workspace_free(void *old) { free(old); }

void median_less_mean(const float *x, float *work, float *out, long rows, long size) {
    for (long row = 0; row < rows; row++) {
        const float *from = x + row * size;
        double sum = 0.0;
        for (long i = 0; i < size; i++) sum += from[i];
        memcpy(work, from, size * sizeof(float));
        out[row] = select_kth(work, size, (size - 1) / 2) - (float)(sum / size);
    }
}
"""


def loaded() -> ctypes.CDLL:
    folder = os.path.join(os.environ.get("TORCH_EXTENSIONS_DIR") or tempfile.gettempdir(), "median_less_mean")
    library = os.path.join(folder, "median.so")
    if not os.path.exists(library):
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            fresh = os.path.join(work, "median.so")
            command = ["gcc", "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", fresh]
            subprocess.run(command, input=SOURCE, text=True, check=True)
            os.replace(fresh, library)
    found = ctypes.CDLL(library)
    pointer, number = ctypes.c_void_p, ctypes.c_long
    found.workspace_grow.argtypes, found.workspace_grow.restype = [pointer, number], pointer
    found.workspace_free.argtypes, found.workspace_free.restype = [pointer], None
    found.median_less_mean.argtypes = [pointer, pointer, pointer, number, number]
    found.median_less_mean.restype = None
    return found


LIBRARY = loaded()


class Workspace:
    def __init__(self) -> None:
        self.address: int | None = None
        self.bytes = 0

    def of(self, size: int) -> int:
        if size > self.bytes:
            grown = LIBRARY.workspace_grow(self.address, size)
            if not grown:
                raise MemoryError(f"no {size} bytes for the workspace")
            self.address, self.bytes = grown, size
        assert self.address is not None
        return self.address

    def __del__(self) -> None:
        LIBRARY.workspace_free(self.address)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.workspace = Workspace()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        rows, size = x.shape
        out = torch.empty(rows, dtype=x.dtype)
        LIBRARY.median_less_mean(x.data_ptr(), self.workspace.of(4 * size), out.data_ptr(), rows, size)
        return out
