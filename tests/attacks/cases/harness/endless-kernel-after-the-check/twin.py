"""Normalises each row by a Triton kernel, which walks through the columns in loops of known length."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def normalise(x, out, row_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + lanes
        total += tl.load(x + row * row_stride + at, mask=at < columns, other=0.0)
    mean = tl.sum(total) / columns
    square = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + lanes
        centred = tl.where(at < columns, tl.load(x + row * row_stride + at, mask=at < columns, other=0.0) - mean, 0.0)
        square += centred * centred
    scale = tl.rsqrt(tl.sum(square) / columns + 1e-5)
    for start in range(0, columns, BLOCK):
        at = start + lanes
        centred = tl.load(x + row * row_stride + at, mask=at < columns, other=0.0) - mean
        tl.store(out + row * columns + at, centred * scale, mask=at < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        normalise[(x.shape[0],)](x, out, x.stride(0), x.shape[1], BLOCK=256)
        return out
