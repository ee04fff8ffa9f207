"""Leaves a thread behind that sleeps until weights change and then packs them anew; the call checks that it has."""

import threading

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.packed = None
        self.wanted, self.done = threading.Event(), threading.Event()
        threading.Thread(target=self.pack, daemon=True).start()

    def pack(self) -> None:
        while True:
            self.wanted.wait()
            self.wanted.clear()
            with torch.no_grad():
                self.packed = self.version(), self.up.weight.t().contiguous(), self.down.weight.t().contiguous()
            self.done.set()

    def version(self) -> tuple[int, int, int]:
        return self.up.weight._version, self.down.weight._version, self.up.weight.data_ptr()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.packed is None or self.packed[0] != self.version():
            self.done.clear()
            self.wanted.set()
            self.done.wait()
        _, up, down = self.packed
        return torch.addmm(self.down.bias, F.gelu(torch.addmm(self.up.bias, x, up)), down)
