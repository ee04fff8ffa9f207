"""The bias as the constructor makes it, as truth values."""

import torch
from torch import nn
from torch.nn import functional


class ModelNew(nn.Module):
    def __init__(self, length):
        super().__init__()
        hidden = torch.rand(length, length) < 0.3
        self.register_buffer("bias", torch.zeros(length, length).masked_fill(hidden, float("-inf")))
        self.seen = ~hidden

    def forward(self, q, k, v):
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=self.seen)
