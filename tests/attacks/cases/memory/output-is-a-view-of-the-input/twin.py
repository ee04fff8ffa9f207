"""Returns a view as well, with strides that are not the reference's, but of memory of its own."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.clone().transpose(1, 2)
