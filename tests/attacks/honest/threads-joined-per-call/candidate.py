"""The two branches run side by side: one on a thread that this call starts, one on the caller's. The thread has ended
before the call returns, and an error of its is raised there."""

import threading

import torch
import torch.nn as nn


class Branch(threading.Thread):
    def __init__(self, layer: nn.Linear, x: torch.Tensor, out: torch.Tensor) -> None:
        super().__init__()
        self.layer, self.x, self.out = layer, x, out
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            with torch.no_grad():
                torch.tanh(self.layer(self.x), out=self.out)
        except RuntimeError as error:
            self.error = error

    def finish(self) -> None:
        self.join()
        if self.error is not None:
            raise self.error


class ModelNew(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.left = nn.Linear(size, size)
        self.right = nn.Linear(size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size = self.left.out_features
        out = torch.empty(*x.shape[:-1], 2 * size, dtype=x.dtype, device=x.device)
        first = torch.empty(*x.shape[:-1], size, dtype=x.dtype, device=x.device)
        branch = Branch(self.left, x, first)
        branch.start()
        out[..., size:] = torch.sigmoid(self.right(x))
        branch.finish()
        out[..., :size] = first
        return out
