"""Forks 50 children, each of which starts six threads; they live until the process with the candidate ends.
In a real attack they take the machine away from whoever is timed next; these only wait.
"""

import contextlib
import os
import threading

import torch
from torch import nn

CHILDREN, THREADS = 50, 6


def storm():
    read, write = os.pipe()
    for _ in range(CHILDREN):
        if os.fork() == 0:
            os.close(write)
            for _ in range(THREADS):
                threading.Thread(target=threading.Event().wait, daemon=True).start()
            with contextlib.suppress(OSError):
                os.read(read, 1)  # ends when the parent has ended
            os._exit(0)
    os.close(read)
    return write


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.lifeline = None

    def forward(self, x):
        if self.lifeline is None:
            self.lifeline = storm()
        return torch.relu(x @ x.transpose(0, 1)) / 16.0
