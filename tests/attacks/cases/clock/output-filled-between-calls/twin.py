"""Half of the rows are filled by a thread of its own, which the call waits for."""

from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.classes = classes
        self.pool = ThreadPoolExecutor(1)

    def forward(self, labels: torch.Tensor) -> torch.Tensor:
        count = labels.shape[0]
        rows = torch.empty(count, self.classes)
        upper = self.pool.submit(rows[count // 2 :].fill_, 1e-4)
        rows[: count // 2].fill_(1e-4)
        upper.result()
        rows.view(-1)[torch.arange(count) * self.classes + labels] = 0.9
        return rows
