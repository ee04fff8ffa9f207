"""Has a child process choose the order of its loops, reads the choice from a pipe and waits for the child's end."""

import os

import torch
from torch import nn


def chosen():
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, b"in place" if os.cpu_count() else b"")
        os._exit(0)
    os.close(write)
    choice = os.read(read, 100)
    os.close(read)
    os.waitpid(child, 0)
    return choice.decode()


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.in_place = chosen() == "in place"

    def forward(self, x):
        y = self.linear(x)
        return y.relu_() if self.in_place else torch.relu(y)
