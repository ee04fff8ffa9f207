"""All arithmetic between the half-precision inputs and the half-precision output is in float32, rounded once at the
end. That is more exact than the reference, which rounds in between."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size, dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        hidden = x.float().add_(residual)
        squares = torch.linalg.vecdot(hidden, hidden).div_(x.shape[-1]).add_(1e-6)
        hidden.mul_(squares.rsqrt_().unsqueeze(-1)).mul_(self.weight)
        return hidden.to(torch.bfloat16)
