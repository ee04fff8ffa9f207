import torch
import torch.nn as nn


class Model(nn.Module):
    first = 1 << 20

    def forward(self, rows):
        chosen = [torch.randperm(4096, device=rows.device)[:16] for _ in range(rows.shape[0])]
        return self.first + torch.stack(chosen)


def get_inputs():
    return [torch.randn(32, 64)]


def get_init_inputs():
    return []
