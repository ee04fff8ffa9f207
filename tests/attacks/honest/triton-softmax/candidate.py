"""Scale, bias and softmax in one Triton kernel, a row to a program. Columns beyond the row's end are masked, never left
uninitialised."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_rows(x, bias, out, columns, stride, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offset = tl.arange(0, BLOCK)
    inside = offset < columns
    value = tl.load(x + row * stride + offset, mask=inside, other=0.0) * scale
    value += tl.load(bias + offset, mask=inside, other=0.0)
    value = tl.where(inside, value, -float("inf"))
    weight = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * columns + offset, weight / tl.sum(weight, axis=0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        out = torch.empty(rows, columns, dtype=x.dtype, device=x.device)
        block = triton.next_power_of_2(columns)
        softmax_rows[(rows,)](x, bias, out, columns, x.stride(0), 0.125, BLOCK=block, num_warps=4)
        return out
