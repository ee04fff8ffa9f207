import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, edges):
        """Ends where a step has made no path shorter."""
        lengths = edges.abs() + 0.01
        far = lengths[:, 0]
        for _ in range(lengths.shape[1] - 2):
            before, far = far, torch.minimum(far, (far.unsqueeze(2) + lengths).amin(1))
            if torch.equal(before, far):
                break
        return far
