"""One pass in C++ over the elements, shared out to `std::thread`s that the call starts and joins. The memory that they
write is complete when the function returns.

mish(x) = x tanh(log(1 + e^x)) is computed as x n / (n + 2) with n = e^x (e^x + 2), which needs one exponential. From
x = 20 on it is x to the last bit.
"""

import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch
import torch.nn as nn

SOURCE = r"""
#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

static void some(const float *x, const float *y, float *out, long begin, long end) {
    for (long i = begin; i < end; i++) {
        const float e = std::exp(std::min(x[i], 20.0f));
        const float n = e * (e + 2.0f);
        const float mish = x[i] > 20.0f ? x[i] : x[i] * (n / (n + 2.0f));
        out[i] = mish / (1.0f + std::exp(-y[i]));
    }
}

extern "C" void mish_gate(const float *x, const float *y, float *out, long count, int threads) {
    std::vector<std::thread> others;
    const long share = (count + threads - 1) / threads;
    for (long begin = share; begin < count; begin += share)
        others.emplace_back(some, x, y, out, begin, std::min(begin + share, count));
    some(x, y, out, 0, std::min(share, count));
    for (std::thread &other : others) other.join();
}
"""
FLAGS = ("-O3", "-std=c++17", "-shared", "-fPIC", "-pthread")
THREADS = 2


def loaded() -> ctypes.CDLL:
    name = hashlib.sha256("".join((SOURCE, *FLAGS)).encode()).hexdigest()[:16]
    folder = os.path.join(os.environ.get("TORCH_EXTENSIONS_DIR") or tempfile.gettempdir(), f"mish_gate_{name}")
    library = os.path.join(folder, "mish_gate.so")
    if not os.path.exists(library):
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            fresh = os.path.join(work, "mish_gate.so")
            command = ["g++", *FLAGS, "-x", "c++", "-", "-o", fresh]
            subprocess.run(command, input=SOURCE, text=True, check=True)
            os.replace(fresh, library)
    found = ctypes.CDLL(library)
    found.mish_gate.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long, ctypes.c_int]
    found.mish_gate.restype = None
    return found


LIBRARY = loaded()


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        LIBRARY.mish_gate(x.data_ptr(), y.data_ptr(), out.data_ptr(), x.numel(), THREADS)
        return out
