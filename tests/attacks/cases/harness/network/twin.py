"""Passes its width through a pair of connected sockets before it uses it."""

import socket

from torch import nn


def through_sockets(number):
    one, other = socket.socketpair()
    with one, other:
        one.sendall(number.to_bytes(8, "little"))
        return int.from_bytes(other.recv(8), "little")


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        width = through_sockets(width)
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return self.linear(x).relu_()
