"""Bias and activation in one C++ loop, built by `load_inline` at import: torch starts ninja and a compiler, and takes a
lock on its own build folder."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
torch::Tensor bias_hardswish(torch::Tensor x, torch::Tensor bias) {
    x = x.contiguous();
    auto out = torch::empty_like(x);
    const int64_t size = bias.numel(), rows = x.numel() / size;
    const float *from = x.data_ptr<float>(), *shift = bias.data_ptr<float>();
    float *to = out.data_ptr<float>();
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t i = 0; i < size; i++) {
            const float v = from[row * size + i] + shift[i];
            const float gate = std::min(std::max(v + 3.0f, 0.0f), 6.0f);
            to[row * size + i] = v * gate / 6.0f * 2.0f;
        }
    }
    return out;
}
"""
EXTENSION = load_inline(
    name="bias_hardswish", cpp_sources=SOURCE, functions=["bias_hardswish"], extra_cflags=["-O3"], verbose=False
)


class ModelNew(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return EXTENSION.bias_hardswish(x, self.bias)
