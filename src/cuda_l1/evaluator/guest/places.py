"""Where in a tensor something is put: few places, so that what is added up stays as large as it was."""

from __future__ import annotations

from collections.abc import Sequence

import torch

MIXED_SHARE = 8
"""One element of so many for each factor: a sum of them cancels no more than before."""


def some_places(shape: Sequence[int], most: int, like: torch.Tensor, among: torch.Tensor | None = None) -> torch.Tensor:
    """True in one place of `MIXED_SHARE`, in `most` at the most and in one at the least, on the device of `like`;
    `among` those that are true in this, where any is."""
    chosen = torch.zeros(shape, dtype=torch.bool, device=like.device)
    count = min(most, max(1, chosen.numel() // MIXED_SHARE))
    free = among.flatten().nonzero().flatten() if among is not None else ()
    places = torch.randint(len(free) or chosen.numel(), (count,), device=like.device)
    chosen.view(-1)[free[places] if len(free) else places] = True
    return chosen


def element_indices(places: torch.Tensor, shape: Sequence[int]) -> tuple[torch.Tensor, ...]:
    """Of elements by their numbers, in such a tensor. `torch.unravel_index` imports SymPy, which takes a third of a
    verdict."""
    found = []
    for size in reversed(shape):
        found.append(places % size)
        places = places // size
    return tuple(reversed(found))
