import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        at = torch.arange(1, x.shape[1] + 1, dtype=torch.int32, device=x.device)
        last = torch.where(x > 0, 0, at).cummax(1).values
        return (at - last).to(x.dtype)
