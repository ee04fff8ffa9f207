from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.topk(64).values
