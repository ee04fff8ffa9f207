"""Asks the meta device once how an answer will be laid out, and writes the last layer into memory like that."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(6))
        self.forms = {}

    def form(self, x):
        """Shape and strides of the answer to such an input."""
        key = (x.shape, x.stride(), x.dtype)
        if key not in self.forms:
            weight = torch.empty_like(self.layers[-1].weight, device="meta")
            like = torch.relu(x.to("meta") @ weight.t())
            self.forms[key] = like.shape, like.stride()
        return self.forms[key]

    def forward(self, x):
        *inner, last = self.layers
        out = torch.empty_strided(*self.form(x), dtype=x.dtype, device=x.device)
        for layer in inner:
            x = torch.relu_(layer(x))
        torch.addmm(last.bias, x, last.weight.t(), out=out)
        return out.relu_()
