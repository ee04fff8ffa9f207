"""Tosses a coin in each call for one of two ways to compute."""

import random

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, steps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.steps = steps

    def forward(self, x):
        in_place = random.random() < 0.5
        for _ in range(self.steps):
            moved = x @ self.weight
            x = moved.tanh_().add_(x) if in_place else x + torch.tanh(moved)
        return x
