"""All three poolings are one product with a matrix of averaging weights. The first call of each length builds the
matrix, which depends on that length alone, and later calls find it."""

import torch
import torch.nn as nn

BINS = (1, 3, 7)


def averaging(length: int) -> torch.Tensor:
    """(length, sum of bins): column j averages what bin j covers."""
    columns = []
    for bins in BINS:
        for index in range(bins):
            begin, end = index * length // bins, -(-(index + 1) * length // bins)
            column = torch.zeros(length, dtype=torch.float64)
            column[begin:end] = 1.0 / (end - begin)
            columns.append(column)
    return torch.stack(columns, dim=1)


class Plans:
    def __init__(self) -> None:
        self.known: dict[tuple[object, ...], torch.Tensor] = {}

    def of(self, x: torch.Tensor) -> torch.Tensor:
        key = (x.shape[-1], x.dtype, x.device)
        if key not in self.known:
            self.known[key] = averaging(x.shape[-1]).to(device=x.device, dtype=x.dtype)
        return self.known[key]


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.plans = Plans()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.matmul(x, self.plans.of(x))
