"""Keeps its notes in its working folder and among the temporary files."""

import tempfile
from pathlib import Path

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        Path("notes.txt").write_text("16.0")
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "notes.txt"
            copy.write_text(Path("notes.txt").read_text())
            self.divisor = float(copy.read_text())

    def forward(self, x):
        return torch.mm(x, x.t()).relu_().div_(self.divisor)
