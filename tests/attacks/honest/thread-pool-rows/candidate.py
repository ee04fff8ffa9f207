"""Rows are shared out to the threads of a pool, which stays alive between calls. Each call waits for all of its parts
and passes their errors on."""

from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKERS = 2


class ModelNew(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(size))
        self.pool = ThreadPoolExecutor(WORKERS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        parts = zip(x.chunk(WORKERS), out.chunk(WORKERS), strict=True)
        futures = [self.pool.submit(self.rows, source, target) for source, target in parts]
        for future in futures:
            future.result()
        return out

    def rows(self, source: torch.Tensor, target: torch.Tensor) -> None:
        with torch.no_grad():  # the mode belongs to a thread, and a worker begins with gradients
            hidden = F.gelu(source * self.scale)
            torch.softmax(hidden, dim=-1, out=target)
