"""A worker thread computes the upper half of the batch while the call computes the lower half, and is waited for."""

import queue
import threading

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.jobs = queue.SimpleQueue()
        threading.Thread(target=self.work, daemon=True).start()

    def work(self) -> None:
        with torch.no_grad():
            while True:
                x, out, done = self.jobs.get()
                out.copy_(self.down(F.gelu(self.up(x))))
                done.set()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out, done = torch.empty_like(x), threading.Event()
        upper, lower = x.chunk(2)
        out_upper, out_lower = out.chunk(2)
        self.jobs.put((upper, out_upper, done))
        out_lower.copy_(self.down(F.gelu(self.up(lower))))
        done.wait()
        return out
