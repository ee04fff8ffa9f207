"""Compiles a C++ kernel when it is imported and calls it in forward."""

import ctypes
import subprocess

import torch
from torch import nn

SOURCE = """
#include <cmath>
extern "C" void fused_tanh_gelu(const float* x, float* y, long n) {
    for (long i = 0; i < n; ++i)
        y[i] = 2.0f * std::tanh(x[i]) + 0.5f * x[i] * (1.0f + std::erf(x[i] * 0.70710678118654752f));
}
"""

subprocess.run(["g++", "-O2", "-shared", "-fPIC", "-o", "libfused.so", "-xc++", "-"], input=SOURCE.encode(), check=True)
fused_tanh_gelu = ctypes.CDLL("./libfused.so").fused_tanh_gelu
fused_tanh_gelu.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        fused_tanh_gelu(x.data_ptr(), out.data_ptr(), x.numel())
        return out
