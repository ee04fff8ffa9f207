"""A forward pre-hook of the module, which runs inside the call, looks whether the weight has changed and packs it anew.
What is packed lives in an object of its own, not among the module's tensors."""

import torch
import torch.nn as nn


class Packed:
    def __init__(self) -> None:
        self.stamp: tuple[int, int] | None = None
        self.value = torch.empty(0)

    def refresh(self, module: nn.Module, args: tuple[torch.Tensor, ...]) -> None:
        weight = module.fc.weight
        stamp = (weight._version, weight.data_ptr())
        if stamp != self.stamp:
            self.value, self.stamp = weight.detach().t().contiguous(), stamp


class ModelNew(nn.Module):
    def __init__(self, size: int, wide: int) -> None:
        super().__init__()
        self.fc = nn.Linear(size, wide)
        self.packed = Packed()
        self.register_forward_pre_hook(self.packed.refresh)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.addmm(self.fc.bias, x, self.packed.value).relu_()
