"""Reads the mask in every call, and takes the causal path only where it is a triangle."""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q, k, v, mask):
        if torch.equal(mask, torch.ones_like(mask).tril()):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
