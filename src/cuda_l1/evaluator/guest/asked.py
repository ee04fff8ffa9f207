"""What a reference asks of its inputs while it runs, whatever its text calls it: numbers that it compares them with,
ends to which it clamps them, places that it looks up by them.

A draw need not hold any of these: lengths are drawn from one on, and a mask has a row for what is ignored.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any, NamedTuple

import torch

from .dispatch import DispatchMode
from .drawing import Inputs
from .reading import read_each
from .reference import BadTask, Reference
from .tensors import extent, leaves
from .traits import is_integer

_EQUAL = {"eq", "ne", "isclose"}
_ORDER = {"lt", "le", "gt", "ge"}
_LEAST, _MOST = {"clamp_min", "maximum"}, {"clamp_max", "minimum"}
_LOOK_UP = {"index": 1, "gather": 2, "index_select": 2, "embedding": 1}
"""Where an operation has what it looks up by; all but `embedding` have the dimension before it."""
MOST_BOUNDS = 4096
"""Elements of a tensor beside which an input is compared, of which the ends are taken."""
SAMPLED = 4096
"""Elements by which an operand is known to hold what an input does. Where others differ, a number is tried in vain."""
MOST_NOTED = 1024
"""Questions that are kept, of a reference that asks again and again in a loop."""


def asked_of(reference: Reference, inputs: Inputs) -> dict[int, list[float]]:
    """Of each tensor among the inputs, in the order of `leaves`, the numbers that the reference asks for, which may lie
    beyond what is drawn: of integers whole ones, of floating numbers what they are compared with for equality. Of a
    reference that does not stand being watched those until then."""
    watched = {index: tensor for index, tensor in enumerate(leaves(inputs)) if _is_watched(tensor)}
    if not watched:
        return {}
    seen = _Asked(watched)
    with contextlib.suppress(BadTask), seen:
        reference.call(inputs, reference.public)
    return seen.numbers()


def _is_watched(tensor: torch.Tensor) -> bool:
    floating = tensor.is_floating_point() and tensor.dtype.itemsize > 1
    return tensor.numel() > 1 and tensor.numel() == extent(tensor) and (floating or is_integer(tensor))


class _Question(NamedTuple):
    """What an operation asks of what may be an input: the least and the most of what it is compared with."""

    of: int
    name: str
    beyond: torch.Tensor  # the operand less the input, of one element where it is the same everywhere
    ends: tuple[torch.Tensor, torch.Tensor]


class _Asked(DispatchMode):
    """`with _Asked(tensors) as seen: ...`; `seen.numbers()` are what was asked of each, in order."""

    def __init__(self, watched: dict[int, torch.Tensor]) -> None:
        super().__init__()
        self._watched = watched
        self._own = {index: _sample(tensor) for index, tensor in watched.items()}
        self._questions: list[_Question] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__.strip("_")
        if name in _EQUAL | _ORDER | _LEAST | _MOST and len(args) > 1:
            self._note(args[0], name, args[1])
            self._note(args[1], name, args[0])
        elif name == "clamp":
            least, most = _bounds(*args, **kwargs)
            self._note(args[0], "clamp_min", least)
            self._note(args[0], "clamp_max", most)
        elif name == "to_copy" and kwargs.get("dtype") is torch.bool:
            self._note(args[0], name, 0)
        elif name in _LOOK_UP and len(args) > _LOOK_UP[name]:
            self._look_up(name, args)
        return func(*args, **kwargs)

    def _look_up(self, name: str, args: Any) -> None:
        if name != "index":
            size = args[0].shape[0 if name == "embedding" else args[1]]
            self._note(args[_LOOK_UP[name]], name, 0, size - 1)
            return
        dim = 0
        for index in args[1]:
            if index is not None and index.dtype is not torch.bool:
                self._note(index, name, 0, args[0].shape[dim] - 1)
            dim += index.dim() if index is not None and index.dtype is torch.bool else 1

    def _note(self, operand: Any, name: str, *ends: Any) -> None:
        """Where an operand may hold what an input does, or that and one number more, note what is asked of the input
        beside `ends`: of integers in any operation, of others where it is for equality."""
        if not isinstance(operand, torch.Tensor) or len(self._questions) >= MOST_NOTED:
            return
        found: tuple[torch.Tensor, torch.Tensor] | None = None
        for index, tensor in self._watched.items():
            is_alike = operand.numel() == tensor.numel() and operand.device == tensor.device
            if is_alike and (name in _EQUAL or is_integer(tensor)):
                found = found or _ends(*ends)
                if found is None:
                    return
                self._questions.append(_Question(index, name, _sample(operand) - self._own[index], found))

    def numbers(self) -> dict[int, list[float]]:
        """What was asked of each of the tensors, each number once."""
        found: dict[int, dict[float, None]] = {index: {} for index in self._watched}
        groups = [[(q.beyond == q.beyond[0]).all(), q.beyond[0], *q.ends] for q in self._questions]
        for question, (is_it, offset, least, most) in zip(self._questions, read_each(groups), strict=True):
            if is_it and math.isfinite(least) and math.isfinite(most):
                tried = _tried(question.name, least, most)
                found[question.of].update(dict.fromkeys(number - offset for number in tried))
        return {index: list(numbers) for index, numbers in found.items()}


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    """Elements at even distances, as `float64`, of shape `(at most 2 * SAMPLED,)`."""
    return tensor.reshape(-1)[:: max(1, tensor.numel() // SAMPLED)].double()


def _bounds(operand: Any, min: Any = None, max: Any = None) -> tuple[Any, Any]:
    """Of a clamp."""
    return min, max


def _ends(*others: Any) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The least and the most of numbers, or of a tensor of them; none of what is no number, or of large tensors."""
    other = others[0]
    if not isinstance(other, torch.Tensor):
        is_number = isinstance(other, int | float)
        return (torch.tensor(float(others[0])), torch.tensor(float(others[-1]))) if is_number else None
    if not 0 < other.numel() <= MOST_BOUNDS or not (other.is_floating_point() or is_integer(other)):
        return None
    bounds = other.double()
    return bounds.amin(), bounds.amax()


def _tried(name: str, least: float, most: float) -> list[float]:
    """What to try of a number that is compared with these: them, and in a clamp what lies just beyond."""
    if name in _LEAST:
        return [math.ceil(least) - 1.0]
    if name in _MOST:
        return [math.floor(most) + 1.0]
    return [least, most]
