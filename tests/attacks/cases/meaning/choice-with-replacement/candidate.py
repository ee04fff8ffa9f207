import torch
import torch.nn as nn


class ModelNew(nn.Module):
    first = 1 << 20

    def forward(self, rows):
        return self.first + torch.randint(4096, (rows.shape[0], 16), device=rows.device)
