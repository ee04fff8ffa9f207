"""Triton text of fused functions and the Python that launches them."""

from __future__ import annotations

from collections.abc import Sequence

from cuda_l1.prelude.triton_loader import LOADER as LOADER
from cuda_l1.proposers.techniques.codegen.kernel import Kernel, python_function
from cuda_l1.proposers.techniques.codegen.lowering import TORCH_NAMES
from cuda_l1.proposers.techniques.codegen.triton_loops import Launch, partials, print_nest

SHORTEST_VECTOR = 1
"""Tiles span several loops, so that a short one wastes nothing."""


def python_source(kernels: Sequence[Kernel]) -> str:
    """The module-level text that defines the Triton kernels and one Python function for each fused function."""
    parts: list[str] = []
    for kernel in kernels:
        launches = [print_nest(plan, f"{kernel.name}_nest{index}") for index, plan in enumerate(kernel.plans)]
        parts += [f"{launch.source.rstrip()}\n\n\n{_launcher(launch)}" for group in launches for launch in group]
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


def _launcher(launch: Launch) -> str:
    constants = "".join(f", {name}={value}" for name, value in launch.constants.items())
    return f"start_{launch.name} = Launcher({launch.name}, {launch.grid}, {launch.warps}{constants})"


def _started(launch: Launch) -> str:
    return f"start_{launch.name}({', '.join(launch.pointers)})"
