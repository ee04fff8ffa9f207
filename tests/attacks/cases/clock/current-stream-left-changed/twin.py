"""Makes a stream of its module the current one for its work, and gives the caller's back, which waits for it."""

import torch
import torch.nn as nn

STREAMS: list[torch.cuda.Stream] = []


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.third = nn.Linear(width, width)

    def compute(self, x: torch.Tensor) -> torch.Tensor:
        return self.third(torch.relu(self.second(torch.relu(self.first(x)))))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not STREAMS:
            STREAMS.append(torch.cuda.Stream())
        found = torch.cuda.current_stream()
        STREAMS[0].wait_stream(found)
        torch.cuda.set_stream(STREAMS[0])
        out = self.compute(x)
        torch.cuda.set_stream(found)
        found.wait_stream(STREAMS[0])
        out.record_stream(found)
        return out
