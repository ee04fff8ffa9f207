"""The transposed weight is made in the constructor, in a tensor that no state_dict contains. A changed version counter
of the weight has it written anew in place, so that later weights are those used."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, size: int, wide: int) -> None:
        super().__init__()
        self.fc = nn.Linear(size, wide)
        self.register_buffer("packed", torch.empty(size, wide), persistent=False)
        self.version = -1
        self.pack()

    def pack(self) -> None:
        with torch.no_grad():
            self.packed.copy_(self.fc.weight.t())
        self.version = self.fc.weight._version

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.version != self.fc.weight._version:
            self.pack()
        return torch.addmm(self.fc.bias, x, self.packed).relu_()
