"""What a reference asks of its inputs while it runs, whatever its text calls it: numbers that it compares them with,
ends to which it clamps them, places that it looks up by them.

A draw need not hold any of these: lengths are drawn from one on, and a mask has a row for what is ignored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from .dispatch import DispatchMode
from .drawing import Inputs
from .reading import read
from .reference import Reference
from .tensors import extent, leaves
from .traits import is_integer

_EQUAL = {"eq", "ne", "isclose"}
_ORDER = {"lt", "le", "gt", "ge"}
_LEAST, _MOST = {"clamp_min", "maximum"}, {"clamp_max", "minimum"}
_LOOK_UP = {"index": 1, "gather": 2, "index_select": 2, "embedding": 1}
"""Where an operation has what it looks up by; all but `embedding` have the dimension before it."""
MOST_BOUNDS = 4096
"""Elements of a tensor beside which an input is compared, of which the ends are taken."""


def asked_of(reference: Reference, inputs: Inputs) -> dict[int, list[float]]:
    """Of each tensor among the inputs, in the order of `leaves`, the numbers that the reference asks for, which may lie
    beyond what is drawn: of integers whole ones, of floating numbers what they are compared with for equality."""
    watched = {index: tensor for index, tensor in enumerate(leaves(inputs)) if _is_watched(tensor)}
    if not watched:
        return {}
    with _Asked(watched) as seen:
        reference.call(inputs, reference.public)
    return {index: list(numbers) for index, numbers in seen.numbers.items()}


def _is_watched(tensor: torch.Tensor) -> bool:
    floating = tensor.is_floating_point() and tensor.dtype.itemsize > 1
    return tensor.numel() > 1 and tensor.numel() == extent(tensor) and (floating or is_integer(tensor))


class _Asked(DispatchMode):
    """`with _Asked(tensors) as seen: ...`; `seen.numbers` are what was asked of each, in order."""

    def __init__(self, watched: dict[int, torch.Tensor]) -> None:
        super().__init__()
        self._own = {index: tensor.flatten().double() for index, tensor in watched.items()}
        self._integers = {index for index, tensor in watched.items() if is_integer(tensor)}
        self.numbers: dict[int, dict[float, None]] = {index: {} for index in watched}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__.strip("_")
        if name in _EQUAL | _ORDER | _LEAST | _MOST and len(args) > 1:
            for mine, other in ((args[0], args[1]), (args[1], args[0])):
                self._note(mine, partial(_beside, name, other), whole=name not in _EQUAL)
        elif name == "clamp":
            least, most = _bounds(*args, **kwargs)
            self._note(args[0], partial(_beside, "clamp_min", least), whole=True)
            self._note(args[0], partial(_beside, "clamp_max", most), whole=True)
        elif name == "to_copy" and kwargs.get("dtype") is torch.bool:
            self._note(args[0], lambda: [0.0], whole=True)
        elif name in _LOOK_UP and len(args) > _LOOK_UP[name]:
            self._look_up(name, args)
        return func(*args, **kwargs)

    def _look_up(self, name: str, args: Any) -> None:
        if name != "index":
            size = args[0].shape[0 if name == "embedding" else args[1]]
            self._note(args[_LOOK_UP[name]], partial(_ends, size), whole=True)
            return
        dim = 0
        for index in args[1]:
            if index is not None and index.dtype is not torch.bool:
                self._note(index, partial(_ends, args[0].shape[dim]), whole=True)
            dim += index.dim() if index is not None and index.dtype is torch.bool else 1

    def _note(self, operand: Any, found: Callable[[], Sequence[float]], *, whole: bool) -> None:
        """Where an operand holds what an input does, or that and one number more, note what is asked of the input.
        `whole`: of integers alone."""
        if not isinstance(operand, torch.Tensor):
            return
        for index, own in self._own.items():
            if operand.numel() != own.numel() or (whole and index not in self._integers):
                continue
            beyond = operand.flatten().double() - own
            is_same, offset = read((beyond == beyond[0]).all(), beyond[0])
            if is_same:
                self.numbers[index].update(dict.fromkeys(number - offset for number in found()))


def _bounds(operand: Any, min: Any = None, max: Any = None) -> tuple[Any, Any]:
    """Of a clamp."""
    return min, max


def _ends(size: int) -> list[float]:
    return [0.0, size - 1.0]


def _beside(name: str, other: Any) -> list[float]:
    """What to try of a number that is compared with `other`: that, and in a clamp what lies just beyond it. Of a tensor
    of bounds its ends."""
    if isinstance(other, torch.Tensor):
        if not 0 < other.numel() <= MOST_BOUNDS or other.dtype is torch.bool or other.is_complex():
            return []
        ends = [float(end) for end in read(other.amin(), other.amax())]
    elif isinstance(other, int | float):
        ends = [float(other)] * 2
    else:
        return []
    if not all(map(math.isfinite, ends)):
        return []
    if name in _LEAST:
        return [math.ceil(ends[0]) - 1.0]
    if name in _MOST:
        return [math.floor(ends[1]) + 1.0]
    return list(dict.fromkeys(ends))
