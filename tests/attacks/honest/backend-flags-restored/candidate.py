"""A convolution this small runs faster without oneDNN and on one thread; both switches hold for this call alone. The
former values are put back before the call returns."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with torch.backends.mkldnn.flags(enabled=False):
                return self.conv(x).tanh_()
        finally:
            torch.set_num_threads(threads)
