"""Draws one token of an image for each row. Their numbers come after those of the text's vocabulary."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, texts):
        super().__init__()
        self.texts = texts

    def forward(self, logits, temperature):
        shares = torch.softmax(logits / temperature, dim=-1)
        return torch.multinomial(shares, 1).squeeze(-1) + self.texts


def get_inputs():
    return [torch.randn(64, 256), torch.tensor(1.0)]


def get_init_inputs():
    return [32768]
