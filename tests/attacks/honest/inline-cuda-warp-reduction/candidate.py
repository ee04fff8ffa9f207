"""RMS normalisation in CUDA, a block to a row: sums of squares are reduced inside warps by shuffles, and across warps
through shared memory. Every word of it is written before the barrier behind which it is read."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 256, WARPS = THREADS / 32;

__device__ float warp_sum(float value) {
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}

__global__ void rms_norm(const float *x, const float *weight, float *out, int size, float eps) {
    __shared__ float of_warp[WARPS];
    const float *from = x + static_cast<long>(blockIdx.x) * size;
    float *to = out + static_cast<long>(blockIdx.x) * size;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < size; i += THREADS) squares += from[i] * from[i];
    squares = warp_sum(squares);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = squares;
    __syncthreads();
    float total = 0.0f;
    for (int warp = 0; warp < WARPS; warp++) total += of_warp[warp];
    const float scale = rsqrtf(total / size + eps);
    for (int i = threadIdx.x; i < size; i += THREADS) to[i] = from[i] * scale * weight[i];
}

torch::Tensor rms_norm_rows(torch::Tensor x, torch::Tensor weight, double eps) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == torch::kFloat, "x must be float32 on a GPU");
    const c10::cuda::CUDAGuard guard(x.device());
    x = x.contiguous();
    auto out = torch::empty_like(x);
    const int size = x.size(-1), rows = x.numel() / size;
    rms_norm<<<rows, THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), out.data_ptr<float>(), size, static_cast<float>(eps));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return out;
}
"""
CPP = "torch::Tensor rms_norm_rows(torch::Tensor x, torch::Tensor weight, double eps);"
EXTENSION = load_inline(
    name="rms_norm_rows", cpp_sources=CPP, cuda_sources=CUDA, functions=["rms_norm_rows"], verbose=False
)


class ModelNew(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return EXTENSION.rms_norm_rows(x, self.weight, 1e-6)
