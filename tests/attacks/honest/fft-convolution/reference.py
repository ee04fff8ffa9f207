import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A causal convolution as long as the sequence, for each channel."""

    def __init__(self, channels: int, length: int) -> None:
        super().__init__()
        decay = torch.exp(-torch.arange(length) / 32.0)
        self.kernel = nn.Parameter(torch.randn(channels, length) * decay)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        channels, length = self.kernel.shape
        return F.conv1d(F.pad(x, (length - 1, 0)), self.kernel.flip(-1).unsqueeze(1), groups=channels)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 8, 192)]


def get_init_inputs() -> list[int]:
    return [8, 192]
