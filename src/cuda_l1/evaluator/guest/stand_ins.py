"""Large numbers that stand for infinity, as -1e9 where a mask lets nothing through, made so large that they do.

Scores of 1e10, which inputs times 1e5 have, outgrow them: a reference then looks at what it masks, and who masks by
infinities, as fused attention does, does not.
"""

from __future__ import annotations

from typing import Any

import torch

from .dispatch import DispatchMode
from .tensors import leaves
from .traits import FEW_VALUES

LEAST = 50.0
"""An exponential of minus this is nothing beside those of ordinary scores. Swin's masks are -100."""
GROWTH = 1e20
_INTO = {"masked_fill", "masked_fill_", "full_like", "fill", "fill_", "index_fill", "index_fill_", "constant_pad_nd"}
_MADE = {"full", "new_full", "scalar_tensor"}
"""Operations that put a number into a tensor like the first argument, or into a new one."""
_COMPARED = (
    *("minimum", "maximum", "fmin", "fmax", "clamp", "clamp_min", "clamp_max"),
    *("lt", "le", "gt", "ge", "eq", "ne"),
)
_BOUND = {name + end: 0 for name in _COMPARED for end in ("", "_")} | {"div": 1, "div_": 1, "atan2": 0, "remainder": 0}
"""Operations that bound numbers by others, and the first argument that may be such a bound."""


def _grown(value: Any) -> Any:
    return value * GROWTH if type(value) in (int, float) and LEAST <= abs(value) < GROWTH else value


class Bounds(Exception):
    """A number that was put bounds others, so that it stands for nothing."""


class BeyondAll(DispatchMode):
    """`with BeyondAll() as beyond: ...`: numbers that a mask puts, and those that it is multiplied by, are times
    `GROWTH`; `beyond.found` says whether there was one. Raises Bounds where one of them is a threshold, a cap or a
    divisor."""

    def __init__(self) -> None:
        super().__init__()
        self.found = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if name in _BOUND and any(map(_holds_grown, leaves([*args[_BOUND[name] :], *kwargs.values()]))):
            raise Bounds(name)
        more = tuple(_grown(arg) for arg in args)
        is_grown = any(new is not old for new, old in zip(more, args, strict=True))
        if is_grown and _puts_a_number(name, args, kwargs.get("dtype")):
            args, self.found = more, True
        return func(*args, **kwargs)


def _holds_grown(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and tensor.dtype.itemsize > 1 and bool((tensor.abs() >= LEAST * GROWTH).any())


def _puts_a_number(name: str, args: Any, dtype: torch.dtype | None) -> bool:
    if dtype is not None and not dtype.is_floating_point:
        return False
    if name in _MADE:
        return dtype is not None or any(type(arg) is float for arg in args)
    if not (args and isinstance(args[0], torch.Tensor) and args[0].is_floating_point()):
        return False
    return name in _INTO or (name in ("mul", "mul_") and bool(((args[0] == 0) | (args[0] == 1)).all()))


def grown(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of zeros and one such number, as an additive mask is, with that number times `GROWTH`; others as they
    are."""
    if not tensor.is_floating_point() or tensor.dtype.itemsize < 2 or tensor.numel() < FEW_VALUES:
        return tensor
    low, high = tensor.aminmax()
    value = high + low
    is_one = bool((low * high == 0) & (value.abs() >= LEAST) & torch.isfinite(value))
    if not (is_one and bool(((tensor == 0) | (tensor == value)).all())):
        return tensor
    return torch.where(tensor == 0, tensor, tensor * GROWTH)
