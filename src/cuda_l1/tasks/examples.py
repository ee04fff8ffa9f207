"""From example inputs to a drawing of inputs like them.

- A floating tensor is drawn normally with the example's mean and standard deviation; one without a negative element
  uniformly between its least and largest, since its reader may rely on the sign.
- An integer tensor is drawn uniformly between its least and largest element, a Boolean one with its share of True.
- Kept exactly, because other values might not be valid: tensors with infinities or NaN (additive masks), integers that
  never decrease along the last dimension (positions, offsets), triangular Boolean masks, constant tensors, numbers,
  strings and None.
Shapes, dtypes and strides are the example's.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuda_l1.errors import TaskError
from cuda_l1.tasks.embedding import DECODER, embed
from cuda_l1.tasks.graph_source import literal

if TYPE_CHECKING:
    import torch


def render_examples(examples: list[Any]) -> str:
    """Text that defines `get_inputs()` (and what it calls) drawing inputs like `examples`. Raises TaskError."""
    expressions = [_like(example, f"input {i}") for i, example in enumerate(examples)]
    body = "".join(f"        {expression},\n" for expression in expressions)
    drawing = f"def get_inputs():\n    return [\n{body}    ]\n"
    helpers = f"import base64\nimport zlib\n\n{DECODER}\n\n" if "_decoded(" in body else ""
    return helpers + drawing


def render_saved(path: Path) -> str:
    """The same for a file written by `torch.save`: a tensor, or a list or tuple of tensors, numbers and containers.

    Read with `weights_only=True`, so that nothing in the file runs. Raises TaskError.
    """
    saved = load_saved(path)
    if isinstance(saved, dict):
        raise TaskError(f"{path}: holds a dict; save the arguments as a list in the order of `forward`")
    return render_examples(list(saved) if isinstance(saved, (list, tuple)) else [saved])


def load_saved(path: Path) -> Any:
    """`torch.load` on the CPU without running anything from the file; raises TaskError."""
    import pickle

    import torch

    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise TaskError(f"{path}: no such file") from None
    except (OSError, RuntimeError, EOFError, ValueError, KeyError, pickle.UnpicklingError) as error:
        if isinstance(error, pickle.UnpicklingError):  # torch advises to run what the file holds
            reason = "it holds something else"
        else:
            reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise TaskError(f"{path}: is not a file of plain tensors written by torch.save: {reason[:200]}") from None


def _like(example: Any, what: str) -> str:
    """An expression for one argument."""
    import torch

    if isinstance(example, torch.Tensor):
        return _tensor_like(example.detach(), what)
    if isinstance(example, dict):
        return (
            "{" + ", ".join(f"{literal(key)}: {_like(item, f'{what}[{key!r}]')}" for key, item in example.items()) + "}"
        )
    if type(example) in (list, tuple):
        parts = [_like(item, f"{what}[{i}]") for i, item in enumerate(example)]
        return (
            f"[{', '.join(parts)}]" if isinstance(example, list) else f"({', '.join(parts)}{',' * (len(parts) == 1)})"
        )
    try:
        return literal(example)
    except TaskError:
        raise TaskError(
            f"{what} is a {type(example).__name__}; inputs are tensors, numbers, strings and containers"
        ) from None


def _tensor_like(example: torch.Tensor, what: str) -> str:
    import torch

    if example.layout is not torch.strided or example.is_quantized or example.is_nested:
        raise TaskError(f"{what} is not a plain strided tensor; convert it before it is passed")
    if example.is_meta:
        raise TaskError(f"{what} is on the meta device and has no values; pass an example with values")
    shape = tuple(1 if step == 0 else size for size, step in zip(example.shape, example.stride(), strict=True))
    base = example.as_strided(shape, example.stride(), example.storage_offset())
    try:
        drawn = _drawn(base, shape, what)
    except RuntimeError as error:  # torch computes nothing in uint16, say
        first = str(error).partition("\n")[0]
        raise TaskError(f"{what}: inputs like it cannot be drawn in {base.dtype}: {first}") from error
    if not base.is_contiguous():
        drawn = f"torch.empty_strided({shape}, {_own_strides(base)}, dtype={base.dtype}).copy_({drawn})"
    return drawn if shape == tuple(example.shape) else f"({drawn}).expand({tuple(example.shape)})"


def _own_strides(base: torch.Tensor) -> tuple[int, ...]:
    """Strides without meaning (those of dimensions of size one) made harmless: at least 1."""
    return tuple(max(1, step) for step in base.stride())


def _drawn(example: torch.Tensor, shape: tuple[int, ...], what: str) -> str:
    import torch

    if example.numel() == 0 or _is_structured(example):
        return embed(example, what)
    if example.dtype == torch.bool:
        return f"(torch.rand({shape}) < {example.double().mean().item():.4g})"
    if example.is_complex():
        return f"torch.randn({shape}, dtype={example.dtype})"
    if not example.is_floating_point():
        low, high = int(example.min()), int(example.max())
        return f"torch.randint({low}, {high + 1}, {shape}, dtype={example.dtype})"
    cast = "" if example.dtype == torch.float32 else f".to({example.dtype})"
    return f"({_floats(example.double(), shape)}){cast}" if cast else _floats(example.double(), shape)


def _floats(example: torch.Tensor, shape: tuple[int, ...]) -> str:
    """Normal with the example's mean and deviation, snapped to 0 and 1 within their sampling error; or uniform."""
    low, high = example.min().item(), example.max().item()
    if low >= 0:
        return f"torch.rand({shape}) * {high - low:.6g} + {low:.6g}"
    count = example.numel()
    mean = example.mean().item()
    deviation = example.std(correction=0).item()
    if abs(mean) < 4 * deviation / math.sqrt(count):
        mean = 0.0
    if abs(deviation - 1) < 4 / math.sqrt(2 * count):
        deviation = 1.0
    scale = "" if deviation == 1.0 else f" * {deviation:.6g}"
    return f"torch.randn({shape}){scale}" + (f" + {mean:.6g}" if mean else "")


def _is_structured(example: torch.Tensor) -> bool:
    """Whether other values than the example's might not be valid."""
    import torch

    first = example.reshape(-1)[0]
    if example.dtype.itemsize > 1 and bool((example == first).all()):
        return True
    if example.is_floating_point() or example.is_complex():
        return not bool(torch.isfinite(example.to(torch.complex128)).all())
    if example.dtype == torch.bool:
        square = example.dim() >= 2 and example.shape[-1] > 1 and example.shape[-2] > 1
        triangular = square and (torch.equal(example, example.tril()) or torch.equal(example, example.triu()))
        return bool(triangular) or bool((example == first).all())
    return example.dim() > 0 and example.shape[-1] > 1 and bool((example.diff(dim=-1) >= 0).all())
