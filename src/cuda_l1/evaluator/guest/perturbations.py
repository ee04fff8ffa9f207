"""Tensors moved a little: what rounding may do to inputs and weights, and what tells equal elements apart."""

from __future__ import annotations

import math

import torch

from . import oracle
from .classes import unit_roundoff

TOLD_APART = 1e-12
"""How far inputs are moved to tell equal elements apart, as a share of the tensor's root mean square: too little to
change anything else."""


def _stays(tensor: torch.Tensor) -> torch.Tensor:
    """Elements that are never moved: integers, which may be choices or ends of an interval, and what is not finite."""
    return (tensor == tensor.round()) | ~torch.isfinite(tensor)


def neighbour(tensor: torch.Tensor) -> torch.Tensor:
    """float32 and float64 numbers moved to the next one above or below, by chance; those that `_stays` names stay."""
    if tensor.is_complex():
        return torch.view_as_complex(neighbour(torch.view_as_real(tensor)))
    if tensor.dtype not in (torch.float32, torch.float64):
        return tensor
    towards = torch.where(torch.rand_like(tensor) < 0.5, math.inf, -math.inf)
    return torch.where(_stays(tensor), tensor, torch.nextafter(tensor, towards.to(tensor.dtype)))


def rounded_to_bf16_by_chance(tensor: torch.Tensor) -> torch.Tensor:
    """float32 elements moved by at most bfloat16's roundoff, as rounding does; those that `_stays` names stay."""
    if tensor.dtype is not torch.float32:
        return tensor
    moved = tensor * (1 + unit_roundoff(torch.bfloat16) * (2 * torch.rand_like(tensor) - 1))
    return torch.where(_stays(tensor), tensor, moved)


def told_apart(tensor: torch.Tensor, towards: float, *, alike: bool = False) -> torch.Tensor:
    """float64 elements, and both parts of complex ones, moved upwards (1) or downwards (-1) by far less than float32
    tells apart; `alike`: all by the same, so that equal ones stay equal."""
    if tensor.dtype is torch.complex128:
        return torch.view_as_complex(told_apart(torch.view_as_real(tensor), towards, alike=alike))
    if tensor.dtype is not torch.float64 or tensor.numel() == 0:
        return tensor
    steps = 0.5 if alike else torch.rand_like(tensor)
    return tensor + towards * TOLD_APART * oracle.rms_of(tensor) * steps


def nudged(tensor: torch.Tensor, roundoffs: float) -> torch.Tensor:
    """Numbers moved by about so many of their dtype's roundoffs; those that `_stays` names stay."""
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.dtype.itemsize < 2:
        return tensor
    parts = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    moved = parts * (1 + roundoffs * unit_roundoff(parts.dtype) * torch.randn_like(parts))
    moved = torch.where(_stays(parts), parts, moved)
    return torch.view_as_complex(moved) if tensor.is_complex() else moved
