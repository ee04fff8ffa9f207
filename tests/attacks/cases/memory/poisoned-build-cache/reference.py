import ctypes
import functools
import os
import subprocess
import tempfile

import torch
from torch import nn

SOURCE = """
#include <cmath>
template <class T> static void run(const T* x, T* y, long count) {
    for (long i = 0; i < count; ++i) y[i] = x[i] / (T(1) + std::fabs(x[i]));
}
extern "C" void squash32(const float* x, float* y, long count) { run(x, y, count); }
extern "C" void squash64(const double* x, double* y, long count) { run(x, y, count); }
"""


@functools.cache
def library():
    """Built once for all processes that share the folder, as build caches do."""
    path = os.path.join(tempfile.gettempdir(), "squash-1.so")
    if not os.path.exists(path):
        command = ["g++", "-O2", "-shared", "-fPIC", "-x", "c++", "-", "-o", path]
        subprocess.run(command, input=SOURCE.encode(), check=True)
    return ctypes.CDLL(path)


class Model(nn.Module):
    """x / (1 + |x|), in C++."""

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        function = library().squash64 if x.dtype == torch.float64 else library().squash32
        function(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), ctypes.c_long(x.numel()))
        return y


def get_inputs():
    return [torch.randn(64, 256)]


def get_init_inputs():
    return []
