import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, d, sigma):
        super().__init__()
        self.fc, self.sigma = nn.Linear(d, d), sigma

    def forward(self, x, keep):
        y = F.relu(self.fc(x), inplace=True).mean(1)
        return y.add_(torch.randn_like(y), alpha=self.sigma)
