"""The same by the FFT of each row and its mirror image."""

import math

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.gain = nn.Parameter(torch.ones(size))
        self.tables = {}

    def turned_and_scaled(self, device):
        if device not in self.tables:
            place = torch.arange(self.size, dtype=torch.float64)
            turn = torch.exp(-0.5j * math.pi * place / self.size).to(torch.complex64)
            scale = torch.full((self.size,), (2 / self.size) ** 0.5)
            scale[0] = (1 / self.size) ** 0.5
            self.tables[device] = turn.to(device), scale.to(device)
        return self.tables[device]

    def forward(self, x):
        size = self.size
        turn, scale = self.turned_and_scaled(x.device)
        spectrum = torch.fft.fft(torch.cat([x, x.flip(-1)], -1))[..., :size] * turn
        weights = spectrum.real * (0.5 * scale * scale * self.gain)
        full = torch.zeros(*x.shape[:-1], 2 * size, dtype=torch.complex64, device=x.device)
        full[..., :size] = weights * turn.conj()
        return torch.fft.ifft(full).real[..., :size] * (2 * size)
