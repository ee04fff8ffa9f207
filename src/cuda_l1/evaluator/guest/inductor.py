"""Inductor and Triton before the fork: what a first call would import, and the hashes that stand in each key.

Importing it asks whether there is a GPU, and torch's answer starts the CUDA driver, whose thread no fork may inherit.
Here the question is answered by whoever knows which device the guests will have.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Sequence

# Each is imported, or called, if this torch has it; what it lacks a guest does not need.
_PARTS = (
    "torch._inductor.compile_fx",
    "torch._inductor.codegen.common:init_backend_registration",
    "torch._inductor.codecache:torch_key",
    "torch._inductor.runtime.triton_compat:triton_key",
    "torch._inductor.compiler_bisector",
    "torch._inductor.hooks",
    "torch.distributed.tensor.experimental._attention",
    "torch.export._trace",
    "triton.tools.tensor_descriptor",
)
_PARTS_OF_TRITON = (
    "triton.language",
    "triton.runtime.cache:triton_key",
    "triton.compiler.compiler:triton_key",  # where earlier releases have it
    "triton.backends.nvidia.driver:library_dirs",  # asks another program where the driver's library is
)


def for_gpu() -> None:
    """For guests that have a GPU."""
    _load(gpu=True)


def for_cpu() -> None:
    """For guests that have none, whatever this machine has."""
    _load(gpu=False)


def triton() -> None:
    """Triton alone, for guests that have a GPU: its modules, and the hash of its own files, which stands in the key of
    each kernel and takes longer than importing it. No driver is started by either."""
    _load_parts(_PARTS_OF_TRITON)


def _load(*, gpu: bool) -> None:
    with _answered(gpu):
        _load_parts(_PARTS)


def _load_parts(parts: Sequence[str]) -> None:
    for part in parts:
        module, _, function = part.partition(":")
        with contextlib.suppress(Exception):
            imported = importlib.import_module(module)
            if function:
                getattr(imported, function)()


@contextlib.contextmanager
def _answered(gpu: bool) -> Iterator[None]:
    """`torch.cuda.is_available` says `gpu` and starts no driver; what was bound to it meanwhile asks torch again."""
    import torch

    ask = torch.cuda.is_available
    known = True

    def is_available() -> bool:
        return gpu if known else ask()

    torch.cuda.is_available = is_available
    try:
        yield
    finally:
        known = False
        torch.cuda.is_available = ask
