"""A forked child sorts the upper half of the rows in shared memory, the call sorts the lower half and waits for it."""

import mmap
import os

import torch
import torch.nn as nn


def shared(like: torch.Tensor) -> torch.Tensor:
    memory = mmap.mmap(-1, like.numel() * like.element_size())
    return torch.frombuffer(memory, dtype=like.dtype).view(like.shape)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.child = None

    def start(self, rows: torch.Tensor) -> None:
        self.rows, self.sorted = shared(rows), shared(rows)
        orders, order = os.pipe()
        done, tell = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            torch.set_num_threads(1)
            os.close(order)
            while os.read(orders, 1):
                self.sorted.copy_(torch.sort(self.rows, dim=-1).values)
                os.write(tell, b".")
            os._exit(0)
        os.close(orders)
        os.close(tell)
        self.order, self.done = order, done

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        upper, lower = x.chunk(2)
        if self.child is None:
            self.start(upper)
        self.rows.copy_(upper)
        os.write(self.order, b".")
        low = torch.sort(lower, dim=-1).values
        os.read(self.done, 1)
        return torch.cat([self.sorted, low])
