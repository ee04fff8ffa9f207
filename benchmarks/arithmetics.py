"""Other arithmetics for any PyTorch module: what its products and sums become while a mode of this file is active.

Reduced precision (operands rounded, accumulated in float32), and float32 in other orders: split products, compensated
(Kahan) sums, three products of TF32 operands for one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from cuda_l1.evaluator.guest.arithmetic import PRODUCTS, round_to_tf32
from cuda_l1.evaluator.guest.tensors import map_leaves

Tensor = torch.Tensor
CHUNKS, LANES, STEPS = 4, 32, 64

_MATMUL = {torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.mm, Tensor.mm, torch.bmm, Tensor.bmm}
_CONV = {F.conv1d, F.conv2d, F.conv3d}
_CONV_TRANSPOSE = {F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d}


class Rounded(TorchFunctionMode):
    """Operands of products go through `cast`, and come back as they were."""

    def __init__(self, cast: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self._cast = cast

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in PRODUCTS:
            args, kwargs = map_leaves(args, self._round), map_leaves(kwargs, self._round)
        return func(*args, **kwargs)

    def _round(self, tensor: Tensor) -> Tensor:
        return self._cast(tensor).to(tensor.dtype) if tensor.is_floating_point() else tensor


def truncated_to_tf32(tensor: Tensor) -> Tensor:
    """The low 13 bits of float32 cut off: what a tensor core does with operands that nobody rounds."""
    if tensor.dtype is not torch.float32:
        return tensor
    return (tensor.contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32)


class Reordered(TorchFunctionMode):
    """float32 in another order: `add` joins the partial results of a product, `total` sums along the last dimension."""

    def __init__(self, add: Callable[[Sequence[Tensor]], Tensor], total: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self._add, self._total = add, total

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        parts = _split(func, args, kwargs)
        if parts is not None:
            partial, bias = parts
            joined = self._add(partial)
            return joined if bias is None else joined + bias
        handler = {
            torch.sum: self._sum, Tensor.sum: self._sum, torch.mean: self._mean, Tensor.mean: self._mean,
            torch.softmax: self._softmax, Tensor.softmax: self._softmax, F.softmax: self._softmax,
            F.layer_norm: self._layer_norm,
        }.get(func)  # fmt: skip
        floating = bool(args) and isinstance(args[0], Tensor) and args[0].dtype is torch.float32
        return handler(*args, **kwargs) if handler and floating else func(*args, **kwargs)

    def _over(self, x: Tensor, dim: Any, keepdim: bool) -> Tensor:
        dims = sorted(d % x.dim() for d in (range(x.dim()) if dim is None else [dim] if isinstance(dim, int) else dim))
        kept = [d for d in range(x.dim()) if d not in dims]
        summed = self._total(x.permute(*kept, *dims).flatten(len(kept)))
        for d in dims if keepdim else ():
            summed = summed.unsqueeze(d)
        return summed

    def _sum(self, x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None) -> Tensor:
        if x.dim() == 0:
            return x
        return self._over(x, dim if axis is None else axis, keepdim)

    def _mean(self, x: Tensor, dim: Any = None, keepdim: bool = False, **named: Any) -> Tensor:
        summed = self._sum(x, dim, keepdim, **named)
        return summed * (summed.numel() / max(x.numel(), 1))

    def _softmax(self, x: Tensor, dim: int = -1, *_: Any, **__: Any) -> Tensor:
        e = torch.exp(x - x.amax(dim, keepdim=True))
        return e / self._over(e, dim, True)

    def _layer_norm(self, x: Tensor, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
        dims = list(range(x.dim() - len(shape), x.dim()))
        mean = self._mean(x, dims, True)
        centred = x - mean
        out = centred * torch.rsqrt(self._mean(centred * centred, dims, True) + eps)
        out = out if weight is None else out * weight
        return out if bias is None else out + bias


def _split(func: Any, args: Any, kwargs: Any) -> tuple[list[Tensor], Tensor | None] | None:
    """Partial products along the summed dimension and the bias to add, where `func` is one that can be split."""
    found = _operands(func, args, kwargs)
    if found is None:
        return None
    call, a, b, dim_a, dim_b, bias = found
    count = min(CHUNKS, a.shape[dim_a])
    pairs = zip(a.chunk(count, dim_a), b.chunk(count, dim_b), strict=True)
    return [call(x.contiguous(), y.contiguous()) for x, y in pairs], bias


def _operands(func: Any, args: Any, kwargs: Any) -> Any:
    """(call on two operands, operands, the dimension of each that is summed, bias), or None."""
    if func in _MATMUL and args[1].dim() > 1 and args[0].dim() > 1:
        return func, args[0], args[1], -1, -2, None
    if func is F.linear:
        bias = args[2] if len(args) > 2 else kwargs.get("bias")
        return F.linear, args[0], args[1], -1, -1, bias
    if func in _CONV or func in _CONV_TRANSPOSE:
        names = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
        if func in _CONV_TRANSPOSE:
            names = ("input", "weight", "bias", "stride", "padding", "output_padding", "groups", "dilation")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        if given.get("groups", 1) != 1:
            return None
        x, weight, bias = given.pop("input"), given.pop("weight"), given.pop("bias", None)
        shaped = None if bias is None else bias.view(-1, *[1] * (weight.dim() - 2))
        return (lambda a, b: func(a, b, **given)), x, weight, 1, 1 if func in _CONV else 0, shaped
    return None


def backwards(parts: Sequence[Tensor]) -> Tensor:
    """Partial results added from the last to the first."""
    total = parts[-1]
    for part in parts[-2::-1]:
        total = total + part
    return total


def compensated(parts: Sequence[Tensor]) -> Tensor:
    """Kahan's sum of tensors."""
    total, lost = parts[0], torch.zeros_like(parts[0])
    for part in parts[1:]:
        due = part - lost
        grown = total + due
        lost = (grown - total) - due
        total = grown
    return total


def _folded(x: Tensor, width: int) -> Tensor:
    """(..., steps, width): the last dimension in rows of `width`, zeros behind it."""
    steps = math.ceil(x.shape[-1] / width)
    return F.pad(x, (0, steps * width - x.shape[-1])).unflatten(-1, (steps, width))


def in_lanes(x: Tensor) -> Tensor:
    """Sum along the last dimension in 32 interleaved lanes, each from front to back, then of the lanes."""
    if x.shape[-1] == 0:
        return x.sum(-1)
    lanes = functools.reduce(torch.add, _folded(x, LANES).unbind(-2))  # torch's own cumsum adds up in float64
    return functools.reduce(torch.add, lanes.unbind(-1))


def kahan(x: Tensor) -> Tensor:
    """Kahan's sum along the last dimension, in lanes of at most 64 steps."""
    if x.shape[-1] == 0:
        return x.sum(-1)
    lanes = compensated(_folded(x, math.ceil(x.shape[-1] / STEPS)).unbind(-2))
    return compensated(lanes.unbind(-1)) if lanes.shape[-1] <= STEPS else kahan(lanes)


class ThreeProducts(TorchFunctionMode):
    """Every product as three of TF32 operands: large with large, and either with the other's remainder."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = _operands(func, args, kwargs or {})
        if found is None:
            return func(*args, **(kwargs or {}))
        call, a, b, _, _, bias = found
        large_a, large_b = round_to_tf32(a), round_to_tf32(b)
        small_a, small_b = round_to_tf32(a - large_a), round_to_tf32(b - large_b)
        product = (call(small_a, large_b) + call(large_a, small_b)) + call(large_a, large_b)
        return product if bias is None else product + bias
