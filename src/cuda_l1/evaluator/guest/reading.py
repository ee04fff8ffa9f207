"""What is read of tensors on a GPU, with as few waits as can be.

Processes that share a GPU take turns, and one that waits for it lets all the others have theirs first.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import Any, Generic, TypeVar

import torch
from torch.utils.weak import WeakTensorKeyDictionary

SMALL = 1 << 13
"""Elements of a tensor up to which a GPU takes longer to answer a question about it than to hand it over."""
AT_ONCE = 1 << 22
"""Elements of a tensor up to which waiting for the device takes longer than computing twice as much."""


def hosted(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Small tensors of a GPU as copies in the host's memory, with one wait for all; others themselves."""
    found = list(tensors)
    small = [index for index, tensor in enumerate(found) if tensor.is_cuda and tensor.numel() <= SMALL]
    if not small:
        return found
    small.sort(key=lambda index: -found[index].dtype.itemsize)  # then each begins where its dtype may
    flat, begin = torch.cat([_bytes_of(found[index]) for index in small]).cpu(), 0
    for index in small:
        tensor, end = found[index], begin + found[index].nbytes
        found[index], begin = flat[begin:end].view(tensor.dtype).view(tensor.shape), end
    return found


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.resolve_conj().resolve_neg().reshape(-1).view(torch.uint8)


def read(*numbers: torch.Tensor) -> list[float]:
    """Tensors of one element each as numbers, with one wait for a GPU in all."""
    return [float(number) for number in hosted(numbers)]


def read_each(groups: Sequence[Sequence[torch.Tensor]]) -> list[list[float]]:
    """`read` of several groups, with one wait for a GPU in all."""
    numbers = iter(read(*(number for group in groups for number in group)))
    return [[next(numbers) for _ in group] for group in groups]


def is_waited_for(tensor: torch.Tensor) -> bool:
    """Whether to learn something of it takes longer than to compute as if it were unknown."""
    return tensor.is_cuda and tensor.numel() <= AT_ONCE


Told = TypeVar("Told")


class Once(Generic[Told]):
    """A question to tensors, put to each once for as long as nothing is written to it."""

    def __init__(self, ask: Callable[[Sequence[torch.Tensor]], Sequence[Told]]) -> None:
        """`ask`: of several, so that they need not be waited for one by one."""
        self._ask = ask
        self._known: MutableMapping[torch.Tensor, tuple[float, Any]] = WeakTensorKeyDictionary()

    def __call__(self, tensor: torch.Tensor) -> Told:
        (told,) = self.of_each([tensor])
        return told

    def of_each(self, tensors: Sequence[torch.Tensor]) -> list[Told]:
        """Its answers for several."""
        told = [self._known.get(tensor, _UNKNOWN) for tensor in tensors]
        asked = [index for index, (version, _) in enumerate(told) if version != _version(tensors[index])]
        for index, answer in zip(asked, self._ask([tensors[index] for index in asked]) if asked else (), strict=True):
            self._known[tensors[index]] = told[index] = _version(tensors[index]), answer
        return [answer for _, answer in told]


_UNKNOWN = (-1, None)


def _version(tensor: torch.Tensor) -> float:
    """Another number after each write; never the same for a tensor that was made for inference, whose writes nobody
    counts. Nor does torch count those of some kernels to state, the statistics of batch normalisation: ask copies."""
    return float("nan") if tensor.is_inference() else tensor._version


def once(ask: Callable[[torch.Tensor], Told]) -> Once[Told]:
    """A question that is put to each tensor for itself."""
    return Once(lambda tensors: [ask(tensor) for tensor in tensors])
