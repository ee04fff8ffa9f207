"""A few elements of each output, looked at when a call has returned and again when the output has been copied.

Copying a large output takes long enough for a thread of the candidate's to finish its work ahead of the copy; what was
still being written when the call returned shows as an element that changed.
"""

from __future__ import annotations

from random import SystemRandom
from typing import Any

import torch

from .tensors import leaves, plain_tensor_problem

PLACES = 64
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Elements are compared as bits: NaN equals itself, and every dtype of these sizes can be looked at."""
_take = torch.take
_equal = torch.equal
_tensor = torch.tensor
_random = SystemRandom()


class Glimpse:
    """Remembers, by the number of elements, which places are looked at; drawn anew for each block of calls."""

    def __init__(self) -> None:
        self._places: dict[int, torch.Tensor] = {}

    def look(self, result: Any) -> list[torch.Tensor]:
        """The chosen elements of each output that is a plain tensor, as bits."""
        return [self._look(t) for t in leaves(result) if not plain_tensor_problem(t) and t.numel()]

    def _look(self, tensor: torch.Tensor) -> torch.Tensor:
        count = tensor.numel()
        if count not in self._places:
            # The ends are among them: work that is cut in two or done in order is unfinished there.
            chosen = [0, count - 1, *(_random.randrange(count) for _ in range(PLACES))]
            self._places[count] = _tensor(chosen, device=tensor.device)
        return _take(tensor.detach().view(_BITS.get(tensor.dtype.itemsize, tensor.dtype)), self._places[count])

    @staticmethod
    def differ(before: list[torch.Tensor], after: list[torch.Tensor]) -> bool:
        """Whether an element changed between two looks at the same outputs."""
        return any(not _equal(one, two) for one, two in zip(before, after, strict=True))
