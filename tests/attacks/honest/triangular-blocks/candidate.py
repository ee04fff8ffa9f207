"""Rows are multiplied up to the diagonal only; what lies beyond is zero by the `tril` that is part of the task, for
every input. The blocks on the diagonal are masked."""

import torch
import torch.nn as nn

BLOCK = 64


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = torch.empty(x.shape[0], y.shape[1], dtype=x.dtype, device=x.device)
        for begin in range(0, x.shape[0], BLOCK):
            end = min(begin + BLOCK, x.shape[0])
            target = out[begin:end]
            torch.mm(torch.tril(x[begin:end, begin:end]), y[begin:end], out=target)
            if begin:
                target.addmm_(x[begin:end, :begin], y[:begin])
        return out
