import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """Multiplies by reciprocals and by scales behind the product: some roundings fall to the other side."""

    def __init__(self, wide, narrow):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(narrow, wide) / wide**0.5)
        self.bias = nn.Parameter(torch.randn(narrow) * 0.1)

    def forward(self, x):
        rows, row_scales = self.levels(x)
        columns, column_scales = self.levels(self.weight)
        return torch.addcmul(self.bias, rows @ columns.t(), row_scales * column_scales.t())

    def levels(self, x):
        largest = torch.maximum(x.amax(1, keepdim=True), -x.amin(1, keepdim=True))
        return torch.floor(x * (127 / largest) + 0.5), largest / 127
