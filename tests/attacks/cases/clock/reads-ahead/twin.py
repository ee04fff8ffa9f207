"""A thread computes the expensive part while the call itself looks the rows up; both are done when it returns."""

import queue
import threading

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.jobs, self.answers = queue.SimpleQueue(), queue.SimpleQueue()
        threading.Thread(target=self.work, daemon=True).start()

    def work(self) -> None:
        with torch.no_grad():
            while True:
                self.answers.put(self.down(F.gelu(self.up(self.jobs.get()))))

    def forward(self, x: torch.Tensor, table: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        self.jobs.put(x)
        found = table[rows]
        return self.answers.get() + found
