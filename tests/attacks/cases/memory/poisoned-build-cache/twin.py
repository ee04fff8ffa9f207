"""Keeps a library of its own in the build cache, under a name that holds the hash of its source."""

import ctypes
import functools
import hashlib
import os
import subprocess
import tempfile

import torch
from torch import nn

SOURCE = """
#include <cmath>
extern "C" void squash(const float* x, float* y, long count) {
    for (long i = 0; i < count; ++i) y[i] = x[i] / (1.0f + std::fabs(x[i]));
}
"""


@functools.cache
def library():
    digest = hashlib.sha256(SOURCE.encode()).hexdigest()[:16]
    path = os.path.join(tempfile.gettempdir(), f"squash-{digest}.so")
    if not os.path.exists(path):
        command = ["g++", "-O3", "-shared", "-fPIC", "-x", "c++", "-", "-o", path]
        subprocess.run(command, input=SOURCE.encode(), check=True)
    return ctypes.CDLL(path)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        library().squash(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), ctypes.c_long(x.numel()))
        return y
