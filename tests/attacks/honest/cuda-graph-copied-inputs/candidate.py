"""The whole forward is captured once for each shape and replayed. Each call copies its input into the graph's memory
first and clones the output afterwards, so that neither an old input nor a later output is ever seen.

A graph reads parameters where they lay when it was captured: values written into them in place are followed, and a
parameter that lies elsewhere or another layout of the input makes a new graph.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

WARM_UPS = 3
MOST_GRAPHS = 4


class Captured:
    """One graph with the memory that it reads and writes."""

    def __init__(self, function, x: torch.Tensor) -> None:
        self.x = x.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # libraries allocate their workspaces before the capture
            for _ in range(WARM_UPS):
                function(self.x)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.out = function(self.x)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.x.copy_(x)
        self.graph.replay()
        return self.out.clone()


class ModelNew(nn.Module):
    def __init__(self, size: int, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(size, size) for _ in range(depth))
        self.norm = nn.LayerNorm(size)
        self.graphs: dict[tuple[object, ...], Captured] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        key = (x.shape, x.stride(), x.dtype, x.device, *(p.data_ptr() for p in self.parameters()))
        if key not in self.graphs:
            if len(self.graphs) >= MOST_GRAPHS:
                self.graphs.clear()
            self.graphs[key] = Captured(self.compute, x)
        return self.graphs[key](x)

    def compute(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + F.gelu(layer(x))
        return self.norm(x)
