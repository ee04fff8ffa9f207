"""Winograd's F(2x2, 3x3): 16 multiplications where the definition of four outputs has 36. The transformed kernel is
kept under the version counter of the weight, and the transforms are exact but for rounding.

    output tile = A^T [ (G g G^T) * (B^T d B) ] A

An input is cut into tiles of 4x4 that overlap by two; each gives 2x2 outputs. Odd heights and widths are padded by
one row or column, whose outputs are dropped.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

INPUT = ((1.0, 0.0, -1.0, 0.0), (0.0, 1.0, 1.0, 0.0), (0.0, -1.0, 1.0, 0.0), (0.0, 1.0, 0.0, -1.0))
KERNEL = ((1.0, 0.0, 0.0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0.0, 0.0, 1.0))
OUTPUT = ((1.0, 1.0, 1.0, 0.0), (0.0, 1.0, -1.0, -1.0))


def both_sides(matrix: torch.Tensor, tiles: torch.Tensor) -> torch.Tensor:
    """M t M^T for each tile t in the last two dimensions."""
    return torch.matmul(torch.matmul(matrix, tiles), matrix.t())


class Transformed:
    """(16, out, in): the transformed kernel, one matrix for each place of a tile; made anew when the weight changes."""

    def __init__(self) -> None:
        self.stamp: tuple[object, ...] | None = None
        self.value = torch.empty(0)

    def of(self, weight: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        stamp = (weight._version, weight.data_ptr(), weight.device)
        if stamp != self.stamp:
            transformed = both_sides(matrix, weight.detach())
            self.value = transformed.flatten(2).permute(2, 0, 1).contiguous()
            self.stamp = stamp
        return self.value


class ModelNew(nn.Module):
    def __init__(self, channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, out_channels, 3, padding=1)
        self.transformed = Transformed()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, channels, height, width = x.shape
        of_input, of_kernel, of_output = (x.new_tensor(matrix) for matrix in (INPUT, KERNEL, OUTPUT))
        padded = F.pad(x, (1, 1 + width % 2, 1, 1 + height % 2))
        tiles = padded.unfold(2, 4, 2).unfold(3, 4, 2)
        down, across = tiles.shape[2:4]
        places = both_sides(of_input, tiles).flatten(4)  # (batch, in, down, across, 16)
        places = places.permute(4, 1, 0, 2, 3).reshape(16, channels, -1)
        products = torch.bmm(self.transformed.of(self.conv.weight, of_kernel), places)  # (16, out, tiles)
        kernels = products.shape[1]
        products = products.view(4, 4, kernels, batch, down, across).permute(3, 2, 4, 5, 0, 1)
        out = both_sides(of_output, products)  # (batch, out, down, across, 2, 2)
        out = out.permute(0, 1, 2, 4, 3, 5).reshape(batch, kernels, 2 * down, 2 * across)
        out = out[:, :, :height, :width]
        return torch.relu(out + self.conv.bias.view(-1, 1, 1))
