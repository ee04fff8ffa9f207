"""Writes the zeros beyond the ends of a row to shared memory before it reads them."""

import torch
from torch import nn

STENCIL = """
extern "C" __global__ void stencil(const float* x, const float* taps, float* y) {
    __shared__ float row[1024 + 2];
    const long long place = (long long)blockIdx.x * 1024 + threadIdx.x;
    if (threadIdx.x == 0) row[0] = row[1025] = 0.0f;
    row[threadIdx.x + 1] = x[place];
    __syncthreads();
    y[place] = taps[0] * row[threadIdx.x] + taps[1] * row[threadIdx.x + 1] + taps[2] * row[threadIdx.x + 2];
}
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.taps = nn.Parameter(torch.tensor([0.25, 0.5, -0.75]))
        self._kernels = {}

    def forward(self, x):
        if not self._kernels:
            self._kernels = {"stencil": torch.cuda._compile_kernel(STENCIL, "stencil")}
        y = torch.empty_like(x)
        self._kernels["stencil"](grid=(x.shape[0], 1, 1), block=(1024, 1, 1), args=[x, self.taps.detach(), y])
        return y
