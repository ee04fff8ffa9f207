import torch
from torch import nn

CAPACITY = 48


class Model(nn.Module):
    """Each token to one of two experts, each of which takes so many at the most: those that come first."""

    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, 2, bias=False)
        self.experts = nn.Parameter(torch.randn(2, width, width) / width**0.5)

    def forward(self, x):
        share, expert = self.gate(x).softmax(-1).max(-1)
        chosen = nn.functional.one_hot(expert, 2)
        taken = (chosen.cumsum(0) * chosen).sum(-1) <= CAPACITY
        answers = torch.einsum("nd,kde->nke", x, self.experts)
        answer = answers.gather(1, expert[:, None, None].expand(-1, 1, x.shape[1])).squeeze(1)
        return answer * (share * taken)[:, None]


def get_inputs():
    return [torch.randn(64, 32)]


def get_init_inputs():
    return [32]
