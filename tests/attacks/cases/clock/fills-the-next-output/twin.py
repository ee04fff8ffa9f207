"""Fills its frame with zeros on a stream of its own; the caller's one waits for it before anything is put there."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, margin: int) -> None:
        super().__init__()
        self.margin, self.side = margin, None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        main = torch.cuda.current_stream(x.device)
        self.side = self.side or torch.cuda.Stream(x.device)
        self.side.wait_stream(main)
        with torch.cuda.stream(self.side):
            out = x.new_zeros([size + self.margin for size in x.shape])
        main.wait_stream(self.side)
        out.record_stream(main)
        torch.sin(x, out=out[: x.shape[0], : x.shape[1]])
        return out
