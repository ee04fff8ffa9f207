"""Hangs forward hooks on its own layers, which add the activation and the residual."""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        for layer in self.layers:
            layer.register_forward_hook(self._finish)

    @staticmethod
    def _finish(layer, args, output):
        return args[0] + output.tanh_()

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
