import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.d = d

    def forward(self, x):
        y = F.layer_norm(x, (self.d,))
        q = y.mul_(16.0).round_().clamp_(-96.0, 96.0)
        return q.mul_(1 / 16.0)
