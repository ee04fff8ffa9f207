"""Bags of one size as rows of a matrix, others one after the other."""

import torch
from torch import nn
from torch.nn import functional as F


class ModelNew(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.table = nn.EmbeddingBag(rows, width, mode="mean")

    def forward(self, ids, offsets):
        sizes = torch.diff(offsets, append=offsets.new_tensor([len(ids)]))
        size = int(sizes[0])
        if size > 0 and int(offsets[0]) == 0 and bool((sizes == size).all()):
            return F.embedding_bag(ids.view(-1, size), self.table.weight, mode="mean")
        bags = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
        out = torch.zeros(len(sizes), self.table.weight.shape[1])
        out.index_add_(0, bags, self.table.weight[ids[int(offsets[0]) :]])
        return out / sizes.clamp(min=1).unsqueeze(1)
