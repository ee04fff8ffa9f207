"""NumPy computes on views of the argument's memory and into an array of its own, which the result then shares. The
argument is only read."""

import numpy as np
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen = x.numpy()
        centred = seen - seen.min(axis=-1, keepdims=True)
        out = np.sqrt(centred)
        np.add(centred, 1.0, out=centred)
        np.divide(out, centred, out=out)
        return torch.from_numpy(out)
