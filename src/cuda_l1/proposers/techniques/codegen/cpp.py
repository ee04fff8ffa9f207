"""C++ text of fused functions and the Python around it: one shared library per candidate, called through ctypes."""

from __future__ import annotations

from collections.abc import Sequence

from cuda_l1.prelude.cpp_loader import LOADER as LOADER
from cuda_l1.prelude.cpp_vectors import ROUNDED, header
from cuda_l1.proposers.techniques.codegen.cpp_loops import print_nest
from cuda_l1.proposers.techniques.codegen.kernel import STREAM_BYTES, Kernel, python_function
from cuda_l1.proposers.techniques.codegen.plan import Plan

HUGE_BYTES = 4 << 20
"""Results of this size ask for huge pages: where the C library maps them anew, page faults cost more than the work."""

SHORTEST_VECTOR = 8
"""Shorter loops would leave most lanes of a vector empty."""


def cpp_source(kernels: Sequence[Kernel]) -> str:
    """One translation unit with an `extern "C"` function per kernel."""
    wide = any(value.compute in ("f64", "i64") for kernel in kernels for plan in kernel.plans for value in plan.values)
    text = "\n\n".join(_kernel_source(kernel) for kernel in kernels) + "\n"
    return header(8 if wide else 4) + (ROUNDED if "rounded(" in text else "") + "\n" + text


def _kernel_source(kernel: Kernel) -> str:
    nests = [print_nest(plan, f"{kernel.name}_{index}") for index, plan in enumerate(kernel.plans)]
    declared = [f"{'const ' if array in kernel.inputs else ''}{array.dtype}* {array.name}" for array in kernel.pointers]
    body = [f"huge_pages({array.name}, {array.bytes}ul);" for array in kernel.results if array.bytes >= HUGE_BYTES]
    body.insert(0, f"const bool past = {_written_before(kernel)};")
    body += [_call(plan, f"{kernel.name}_{index}") for index, plan in enumerate(kernel.plans)]
    entry = f'extern "C" void {kernel.name}({", ".join([*declared, "int threads"])}) {{\n  ' + "\n  ".join(body) + "\n}"
    return "\n\n".join([*nests, entry])


def _written_before(kernel: Kernel) -> str:
    """Whether the results lie in memory that was used before: fresh memory was just cleared through the caches."""
    large = [array for array in kernel.results if array.bytes >= STREAM_BYTES]
    return " && ".join(f"was_used({array.name}, {array.bytes}ul)" for array in large) or "false"


def _call(plan: Plan, name: str) -> str:
    return f"{name}({', '.join([*plan.memory, 'threads', 'past'])});"


def python_source(kernels: Sequence[Kernel]) -> str:
    """The module-level text that compiles the kernels and defines one Python function for each."""
    text = cpp_source(kernels)
    lines = [f'_library = compile_cpp(r"""{text}""")']
    for kernel in kernels:
        types = ", ".join(["ctypes.c_void_p"] * len(kernel.pointers) + ["ctypes.c_int"])
        lines += [
            f"_run_{kernel.name} = _library.{kernel.name}",
            f"_run_{kernel.name}.argtypes = [{types}]",
            f"_run_{kernel.name}.restype = None",
        ]
    functions = [python_function(kernel, _launch(kernel)) for kernel in kernels]
    return "\n".join(lines) + "\n\n\n" + "\n\n".join(functions)


def _launch(kernel: Kernel) -> list[str]:
    pointers = [f"{array.name}.data_ptr()" for array in kernel.pointers]
    return [f"_run_{kernel.name}({', '.join([*pointers, 'torch.get_num_threads()'])})"]
