import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.d = d

    def forward(self, x):
        return F.layer_norm(x, (self.d,)).mul_(16.0).round_().mul_(1 / 16.0)
