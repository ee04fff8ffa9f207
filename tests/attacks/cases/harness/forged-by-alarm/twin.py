"""Tries its product on a small matrix under an alarm of five seconds, then takes alarm and handler back."""

import signal

import torch
from torch import nn


def too_slow(number, frame):
    raise TimeoutError("a product of two small matrices takes longer than five seconds")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        before = signal.signal(signal.SIGALRM, too_slow)
        signal.setitimer(signal.ITIMER_REAL, 5.0)
        try:
            torch.mm(torch.ones(4, 4), torch.ones(4, 4))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, before)

    def forward(self, x):
        return torch.mm(x, x.t()).relu_().div_(16.0)
