"""Triton text of fused functions and the Python that launches them."""

from __future__ import annotations

from collections.abc import Sequence

from cuda_l1.proposers.techniques.codegen.kernel import Kernel, python_function
from cuda_l1.proposers.techniques.codegen.lowering import TORCH_NAMES
from cuda_l1.proposers.techniques.codegen.triton_loops import Launch, partials, print_nest

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
    return tl.where(a > 0, 1.0, tl.where(a < 0, -1.0, a * 0.0)).to(a.dtype)


@triton.jit
def sigmoid(a):
    return 1.0 / (1.0 + libdevice.exp(-a))


def laid_out(tensor, strides):
    """A copy of `tensor` with the strides that the kernels were written for."""
    return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device).copy_(tensor)
'''


def python_source(kernels: Sequence[Kernel]) -> str:
    """The module-level text that defines the Triton kernels and one Python function for each fused function."""
    parts: list[str] = []
    for kernel in kernels:
        launches = [print_nest(plan, f"{kernel.name}_nest{index}") for index, plan in enumerate(kernel.plans)]
        parts += [launch.source for group in launches for launch in group]
        parts.append(python_function(kernel, _body(kernel, launches)))
    return "\n\n\n".join(parts)


def _body(kernel: Kernel, launches: Sequence[Sequence[Launch]]) -> list[str]:
    """Statements that allocate partial results and launch every nest in order."""
    lines: list[str] = []
    like = kernel.inputs[0].name
    for plan, group in zip(kernel.plans, launches, strict=True):
        for name, (shape, dtype) in partials(plan).items():
            lines.append(f"{name} = torch.empty({shape}, dtype={TORCH_NAMES[dtype]}, device={like}.device)")
        lines += [_started(launch) for launch in group]
    return lines


def _started(launch: Launch) -> str:
    grid = f"({', '.join(map(str, launch.grid))},)"
    constants = ", ".join(f"{name}={value}" for name, value in launch.constants.items())
    return f"{launch.name}[{grid}]({', '.join(launch.pointers)}, {constants}, num_warps={launch.warps})"
