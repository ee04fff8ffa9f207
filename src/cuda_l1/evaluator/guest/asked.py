"""What a reference asks of its inputs while it runs, whatever its text calls it: numbers that it compares them, or some
of their elements, with, ends to which it clamps them, places that it looks up by them.

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

_EQUAL = {"eq", "ne"}
_ORDER = {"lt", "le", "gt", "ge", "bucketize"}
_LEAST, _MOST = {"clamp_min", "maximum"}, {"clamp_max", "minimum"}
_LOOK_UP = {"index": 1, "gather": 2, "index_select": 2, "embedding": 1}
"""Where an operation has what it looks up by; all but `embedding` have the dimension before it."""
_MOVE = {"clone", "to_copy", "index", "index_select", "gather", "cat", "stack", "flip", "roll", "repeat", "unfold"}
"""What leaves the elements of its operands as they are."""
_RISING = _MOVE | _LEAST | _MOST | {"add", "sub", "clamp", "cumsum", "sum"}
"""What is no smaller for larger operands."""
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


def clamped(reference: Reference, inputs: Inputs) -> dict[str, list[float]]:
    """Of each parameter that the reference clamps as it is, by name, numbers beyond the ends."""
    parameters = reference.model.named_parameters()
    named = [(name, value) for name, value in parameters if value.numel() > 1 and value.is_floating_point()]
    if not named:
        return {}
    seen = _Asked(dict(enumerate(value for _, value in named)), of_weights=True)
    with contextlib.suppress(BadTask), seen:
        reference.call(inputs, reference.public)
    return {named[index][0]: numbers for index, numbers in seen.numbers().items() if numbers}


def _is_watched(tensor: torch.Tensor) -> bool:
    floating = tensor.is_floating_point() and tensor.dtype.itemsize > 1
    return tensor.numel() > 1 and tensor.numel() == extent(tensor) and (floating or is_integer(tensor))


class _Question(NamedTuple):
    """What an operation asks of what may be an input: the least and the most of what it is compared with."""

    of: int
    name: str
    beyond: torch.Tensor  # the operand less the input, of one element where it is the same everywhere
    ends: tuple[torch.Tensor, torch.Tensor]


class _Reach(NamedTuple):
    """What an operation asks of what was computed of integers among the inputs."""

    of: dict[int, int]  # as in an `_Origin`
    reach: tuple[torch.Tensor, torch.Tensor]  # the least and the most of it
    ends: tuple[torch.Tensor, torch.Tensor]


class _Origin(NamedTuple):
    """Of the elements of a storage."""

    of: dict[int, int]  # 1 where they are larger for larger ones of that input, -1 for smaller ones, 0 for either
    is_own: bool  # elements of these inputs, else integers that were computed of them


class _Asked(DispatchMode):
    """`with _Asked(tensors) as seen: ...`; `seen.numbers()` are what was asked of each, in order. `of_weights`: of
    these themselves, and where floating ones are clamped, else for equality."""

    def __init__(self, watched: dict[int, torch.Tensor], *, of_weights: bool = False) -> None:
        super().__init__()
        self._watched = watched
        self._own = {} if of_weights else {index: _sample(tensor) for index, tensor in watched.items()}
        self._of_floats = _LEAST | _MOST if of_weights else _EQUAL
        self._origins = {_storage(tensor): _Origin({index: 1}, True) for index, tensor in watched.items()}
        self._questions: list[_Question] = []
        self._reaches: list[_Reach] = []
        self._asked = set[tuple[Any, ...]]()

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
        result = func(*args, **kwargs)
        self._follow(name, args, result, changes=func._schema.is_mutable)
        return result

    def _follow(self, name: str, args: Any, result: Any, *, changes: bool) -> None:
        """Note where what lies in a result comes from. What is looked up is of the table."""
        placed = list(enumerate(args[: 1 if name in _LOOK_UP else None]))
        given = [each for _, arg in placed for each in _tensors(arg)]
        of, are_own = dict[int, int](), name in _MOVE and not changes
        for position, arg in placed:
            sign = _sign(name, position, args)
            for each in _tensors(arg):
                origin = self._origins.get(_storage(each))
                are_own = are_own and origin is not None and origin.is_own
                for index, own in origin.of.items() if origin is not None else ():
                    of[index] = own * sign if of.get(index, own * sign) == own * sign else 0
        integers = bool(of) and all(is_integer(self._watched[index]) for index in of)
        for made in _tensors(result):
            place = _storage(made)
            if not place or (not changes and any(_storage(each) == place for each in given)):
                continue  # empty, or a view
            if are_own and (integers or made.is_floating_point()):
                self._origins[place] = _Origin(of, True)
            elif integers and (is_integer(made) or name == "to_copy") and made.dtype is not torch.bool:
                self._origins[place] = _Origin(of, False)
            else:
                self._origins.pop(place, None)

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
        if not isinstance(operand, torch.Tensor) or len(self._questions) + len(self._reaches) >= MOST_NOTED:
            return
        origin = self._origins.get(_storage(operand))
        own = origin.of if origin is not None and origin.is_own else None
        for index, tensor in self._watched.items():
            is_alike = index in self._own and operand.numel() == tensor.numel() and operand.device == tensor.device
            if not (is_alike if own is None else index in own) or not (name in self._of_floats or is_integer(tensor)):
                continue
            if own is not None and all(isinstance(end, int | float) for end in ends):
                if (index, name, *ends) in self._asked:
                    continue
                self._asked.add((index, name, *ends))
            if (found := _ends(*ends)) is None:
                return
            beyond = found[0].new_zeros(1) if own is not None else _sample(operand) - self._own[index]
            self._questions.append(_Question(index, name, beyond, found))
        if origin is None or origin.is_own or name not in _ORDER | _LEAST | _MOST or operand.device.type != "cpu":
            return
        if operand.numel() and (found := _ends(*ends)) is not None:
            reach = operand.amin().double(), operand.amax().double()
            self._reaches.append(_Reach(origin.of, reach, found))

    def numbers(self) -> dict[int, list[float]]:
        """What was asked of each of the tensors, each number once."""
        found: dict[int, dict[float, None]] = {index: {} for index in self._watched}
        groups = [[(q.beyond == q.beyond[0]).all(), q.beyond[0], *q.ends] for q in self._questions]
        for question, (is_it, offset, least, most) in zip(self._questions, read_each(groups), strict=True):
            if is_it and all(map(math.isfinite, (offset, least, most))):
                tried = _tried(question.name, least, most)
                found[question.of].update(dict.fromkeys(number - offset for number in tried))
        for reach in self._reaches:
            for index, sign in reach.of.items():
                found[index].update(dict.fromkeys(_far_enough(self._watched[index], reach, sign)))
        return {index: list(numbers) for index, numbers in found.items()}


def _storage(tensor: torch.Tensor) -> int:
    """Where it lies; 0 of what has no storage."""
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0


def _tensors(value: Any) -> list[torch.Tensor]:
    """Those in an argument or a result of an operation."""
    many = value if isinstance(value, list | tuple) else [value]
    return [each for each in many if isinstance(each, torch.Tensor)]


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    """Elements at even distances, as `float64`, of shape `(at most 2 * SAMPLED,)`."""
    return tensor.reshape(-1)[:: max(1, tensor.numel() // SAMPLED)].double()


def _bounds(operand: Any, min: Any = None, max: Any = None, **others: Any) -> tuple[Any, Any]:
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
    """What to try of a number that is compared with these: them, and what lies just beyond, in a clamp that alone."""
    if name in _LEAST:
        return [math.ceil(least) - 1.0]
    if name in _MOST:
        return [math.floor(most) + 1.0]
    return [least, most] if name not in _ORDER else [least, most, least - 1.0, most + 1.0]


def _far_enough(tensor: torch.Tensor, reach: _Reach, sign: int) -> list[float]:
    """What to try of integers where what is computed of them lies on one side of all that it is compared with, as a
    difference of times that are all within a window: so far from the others that it lies on the other side too, and of
    several inputs so far that it does beside half of what the others hold. `sign`: as in an `_Origin`."""
    (low, high), (least, most) = ([float(end) for end in ends] for ends in (reach.reach, reach.ends))
    if not low <= high < math.inf or not (high <= least or low >= most):
        return []
    is_below = high <= least
    step = math.ceil(least) + 1 - high if is_below else low + 1 - math.floor(most)
    if not math.isfinite(step):
        return []
    first, last, half = float(tensor.min()), float(tensor.max()), (high - low) // 2
    larger = [last + step, *[last + step + half] * (len(reach.of) > 1)]
    towards = sign if is_below else -sign
    return [*(larger if towards >= 0 else []), *([first - step] if towards <= 0 else [])]


def _sign(name: str, position: int, args: Any) -> int:
    """Whether a result is larger (1) or smaller (-1) for a larger operand; 0 where it may be either."""
    if name in ("neg", "rsub") or (name == "sub" and position == 1):
        return 1 if name == "rsub" and position == 1 else -1
    is_scaled = name == "mul" and len(args) > 1 and isinstance(args[1], int | float) and args[1] >= 0
    return int(is_scaled or name in _RISING)
