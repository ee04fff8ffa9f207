"""The Triton functions that kernels call, and what launches a kernel."""

from __future__ import annotations

LOADER = '''
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def larger(a, b):
    """The maximum; nan wins, as in PyTorch."""
    return tl.where((a > b) | (a != a), a, b)


@triton.jit
def smaller(a, b):
    """The minimum; nan wins."""
    return tl.where((a < b) | (a != a), a, b)


@triton.jit
def sign_of(a):
    """The sign; that of nan is 0, as in PyTorch."""
    return tl.where(a > 0, 1.0, tl.where(a < 0, -1.0, 0.0)).to(a.dtype)


@triton.jit
def sigmoid(a):
    return 1.0 / (1.0 + libdevice.exp(-a))


class Launcher:
    """Starts one kernel with fixed constants.

    Triton's own way to a launch binds and specialises the arguments anew each time, which costs the host more than
    many of these kernels take. What it compiled is kept, one form for each alignment of the pointers (Triton compiles
    for multiples of 16 apart), and started directly from then on.
    """

    def __init__(self, kernel, grid, warps, **constants):
        self.kernel, self.grid, self.warps, self.constants = kernel, grid, warps, constants
        self.sizes = (*grid, 1, 1)[:3]
        self.compiled = {}

    def __call__(self, *tensors):
        device = tensors[0].get_device()
        addresses = [tensor.data_ptr() for tensor in tensors]
        key = (device, *[address % 16 == 0 for address in addresses])
        found = self.compiled.get(key)
        if found is None:
            self.compiled[key] = self.kernel[self.grid](*tensors, num_warps=self.warps, **self.constants)
            return
        stream = torch._C._cuda_getCurrentRawStream(device)
        found.run(
            *self.sizes, stream, found.function, found.packed_metadata, None, None, None,
            *addresses, *self.constants.values(),
        )


def laid_out(tensor, strides):
    """A copy of `tensor` with the strides that the kernels were written for."""
    return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device).copy_(tensor)
'''
