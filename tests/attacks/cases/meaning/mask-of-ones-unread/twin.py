"""Reads the mask, and leaves it out where it keeps everything."""

import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q, k, v, mask):
        kept = None if mask.all() else mask[:, None, None, :]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=kept)
