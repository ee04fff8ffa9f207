"""The table of positions is mapped from a file in a temporary folder, so that its pages can be given back when memory
is short. The folder is removed by `weakref.finalize` when the module dies or the interpreter ends; nothing that
belongs to a call is left for later.

The table is computed by the constructor from its arguments, in float64 as the reference does. It depends on no input.
"""

import math
import shutil
import tempfile
import weakref
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn


def sinusoids(rows: int, size: int) -> np.ndarray:
    """(rows, size): sines, then cosines, of positions times falling rates."""
    position = np.arange(rows, dtype=np.float64)[:, None]
    rate = np.exp(np.arange(0, size, 2, dtype=np.float64) * (-math.log(10000.0) / size))
    angle = position * rate
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=-1).astype(np.float32)


class MappedTable:
    """An array in a file that is unlinked with this object."""

    def __init__(self, values: np.ndarray) -> None:
        folder = tempfile.mkdtemp(prefix="table-")
        self.remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        path = Path(folder) / "table.f32"
        values.tofile(path)
        self.mapped = np.memmap(path, dtype=np.float32, mode="r", shape=values.shape)

    def rows(self, index: torch.Tensor) -> torch.Tensor:
        """(n, size) for n indices, read through the mapping into memory of its own."""
        taken = np.take(self.mapped, index.numpy(), axis=0)
        return torch.from_numpy(np.ascontiguousarray(taken))


class ModelNew(nn.Module):
    def __init__(self, rows: int, size: int) -> None:
        super().__init__()
        values = sinusoids(rows, size)
        self.register_buffer("table", torch.from_numpy(values))
        self.gain = nn.Parameter(torch.ones(size))
        self.mapped = MappedTable(values)

    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return torch.addcmul(self.mapped.rows(index), x, self.gain)
