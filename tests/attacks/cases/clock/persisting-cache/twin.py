"""Asks the GPU how much of its cache may be set aside, to cut a product into pieces that fit there; nothing is."""

import ctypes

import torch
import torch.nn as nn
import torch.nn.functional as F

PERSISTING_SIZE = 108  # CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE


def room(device: torch.device) -> int:
    """Bytes."""
    handle, found = ctypes.c_int(), ctypes.c_int()
    driver = ctypes.CDLL("libcuda.so.1")
    if driver.cuDeviceGet(ctypes.byref(handle), device.index or 0):
        raise RuntimeError("the driver knows no such device")
    if driver.cuDeviceGetAttribute(ctypes.byref(found), PERSISTING_SIZE, handle):
        raise RuntimeError("the driver does not say how much of the cache may be set aside")
    return found.value


class ModelNew(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.pieces = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.pieces:
            self.pieces = min(4, 1 + self.up.weight.nbytes // max(room(x.device), 1 << 20))
        pairs = zip(self.up.weight.chunk(self.pieces), self.up.bias.chunk(self.pieces), strict=True)
        wide = torch.cat([F.linear(x, weight, bias) for weight, bias in pairs], dim=-1)
        return self.down(wide.relu_())
