"""Tensors written into source text, exactly: small ones as literals, patterns as calls, others as compressed bytes."""

from __future__ import annotations

import base64
import textwrap
import zlib
from typing import TYPE_CHECKING

from cuda_l1.errors import TaskError
from cuda_l1.tasks.graph_source import literal

if TYPE_CHECKING:
    import torch

_LITERAL_ELEMENTS = 64
_LIMIT_BYTES = 8 << 20

DECODER = '''
def _decoded(shape, dtype, text):
    """The tensor that was written into this file as compressed bytes."""
    data = bytearray(zlib.decompress(base64.b85decode(text)))
    return torch.frombuffer(data, dtype=torch.uint8).view(dtype).view(shape).to(torch.get_default_device())
'''
"""Text that `embed`'s expressions may call; it needs `import base64, zlib, torch`."""


def embed(tensor: torch.Tensor, what: str) -> str:
    """An expression for exactly this tensor (values, shape, dtype; contiguous), on the default device.

    It needs `torch`, and `DECODER` where the expression says `_decoded`. Raises TaskError, naming `what`, where the
    compressed bytes would make the file larger than 8 MiB.
    """
    import torch

    plain = tensor.detach().cpu().contiguous()
    shape, dtype = tuple(plain.shape), str(plain.dtype)
    if pattern := _pattern(plain):
        return pattern
    printable = plain.dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16) or not (
        plain.is_floating_point() or plain.is_complex()
    )
    if printable and plain.numel() <= _LITERAL_ELEMENTS:
        return f"torch.tensor({literal(plain.tolist())}, dtype={dtype})"
    raw = plain.reshape(-1).view(torch.uint8).numpy().tobytes()
    text = base64.b85encode(zlib.compress(raw, 9)).decode()
    if len(text) > _LIMIT_BYTES:
        raise TaskError(
            f"{what} is a constant of {len(raw) >> 20} MiB, too large to write into a file; register it as a "
            "persistent buffer, so that it travels with the weights"
        )
    lines = "\n".join(f"    {chunk!r}" for chunk in textwrap.wrap(text, 100, break_on_hyphens=False))
    return f"_decoded({shape}, {dtype}, (\n{lines}\n))"


def _pattern(tensor: torch.Tensor) -> str | None:
    """A call for a tensor with one value throughout, or for 0, 1, 2, ...; None for others."""
    import torch

    if tensor.numel() == 0:
        return f"torch.zeros({tuple(tensor.shape)}, dtype={tensor.dtype})"
    if tensor.is_complex() or (tensor.dtype.itemsize == 1 and tensor.is_floating_point()):
        return None
    first = tensor.reshape(-1)[0]
    if tensor.dim() and bool((tensor == first).all()):
        return f"torch.full({tuple(tensor.shape)}, {literal(first.item())}, dtype={tensor.dtype})"
    count = tensor.numel()
    if tensor.dtype in (torch.int32, torch.int64) and bool((tensor.reshape(-1) == torch.arange(count)).all()):
        shaped = "" if tensor.dim() == 1 else f".view({tuple(tensor.shape)})"
        return f"torch.arange({count}, dtype={tensor.dtype}){shaped}"
    return None
