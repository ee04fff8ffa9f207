"""Weights packed as halves of their transposes; `load_reference` packs others in the same way."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        up, down = nn.Linear(width, width), nn.Linear(width, width)
        for name, layer in (("first", up), ("second", down)):
            self.register_buffer(name, layer.weight.detach().t() * 0.5)
            self.register_buffer(f"{name}_bias", layer.bias.detach() * 0.5)

    def load_reference(self, state):
        for name, source in (("first", "up"), ("second", "down")):
            getattr(self, name).copy_(state[f"{source}.weight"].t() * 0.5)
            getattr(self, f"{name}_bias").copy_(state[f"{source}.bias"] * 0.5)

    def forward(self, x):
        x = torch.addmm(self.first_bias, x, self.first).relu_()
        return torch.addmm(self.second_bias, x, self.second, alpha=2.0).mul_(2.0)
