"""Overriding of torch functions by subclasses is switched off for the inside of the call, where only plain tensors
occur. A subclass among the arguments is made plain first, and a plain tensor is returned."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Named(torch.Tensor):
    """A tensor subclass of the kind that callers wrap their arguments in."""


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, mean: torch.Tensor, spread: torch.Tensor) -> torch.Tensor:
        if any(isinstance(argument, Named) for argument in (x, mean, spread)):
            x, mean, spread = (argument.as_subclass(torch.Tensor) for argument in (x, mean, spread))
        with torch._C.DisableTorchFunctionSubclass():
            scaled = torch.sub(x, mean).div_(spread.abs().add_(1.0))
            return F.softplus(scaled)
