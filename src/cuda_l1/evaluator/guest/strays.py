"""Few samples that lie otherwise than independent numbers, among others that stay as drawn.

No independent draw holds a long dip, a winding ridge, two copies of one series that run apart, or numbers all of one
size. A candidate that takes a shorter way for what is drawn can look whether means, deviations, extremes or columns are
those of a draw, and answer as the reference does where they are not. These samples keep mean and deviation of their
draw, and most only the order of their numbers changes, so that such a look tells nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import torch

from .agreed import as_agreed, keeping_what_stays, with_each
from .drawing import Inputs
from .entropy import ENTROPY
from .places import MIXED_SHARE, element_indices
from .traits import has_structure_of_zeros, may_be_stressed

LEAST, MOST, LONGEST = 8, 1 << 18, 1 << 20
"""Elements of a sample. Larger ones are parted along their first dimensions, so that sorting takes no time; a row may
have a few more, since it cannot be."""
FARTHEST = 256
"""Elements apart, at the most, of those that are `interleaved`."""
MANY = 16
"""Samples at the most that lie otherwise, and fewer of long rows."""

Way = Callable[[torch.Tensor, bool], torch.Tensor]
"""Another sample out of a drawn one; with the truth value ways that relate tensors go the one way or the other."""


@keeping_what_stays
def with_strays(inputs: Inputs, fixed: Collection[int], *, ways: Sequence[Way], deck: list[Way]) -> tuple[Inputs, bool]:
    """The inputs with one sample in `MIXED_SHARE`, or half of a few, made otherwise in these `ways`, the same samples
    in the same way in every tensor of as many; and whether there was a tensor of samples. One of a single dimension is
    one sample. Those that are the same in every draw (`fixed`, in the order of `leaves`) stay. `deck`: the ways whose
    turn has not come, since of a batch of few samples one call takes no more than some of them."""
    dealt: dict[int, tuple[torch.Tensor, list[Way]]] = {}
    sources: dict[tuple[torch.Size, torch.dtype], torch.Tensor] = {}
    turn = ENTROPY.random() < 0.5

    def make(tensor: torch.Tensor, before: list[torch.Tensor]) -> torch.Tensor:
        nonlocal turn
        rows = tensor.unsqueeze(0) if tensor.dim() == 1 else tensor
        lead = _leading(rows)
        if not lead or not may_be_stressed(tensor) or has_structure_of_zeros(tensor):
            return tensor
        count = lead.numel()
        if count not in dealt:
            many = min(MANY, MANY * MOST // rows[(0,) * len(lead)].numel())
            chosen = torch.randperm(count)[: min(many, max(1, count // MIXED_SHARE, min(count // 2, len(ways))))]
            dealt[count] = chosen, [_deal(ways, deck) for _ in chosen]
        places, lots = dealt[count]
        at = element_indices(places.to(tensor.device), lead)
        samples = rows[at]
        source = sources.setdefault((samples.shape, samples.dtype), samples)
        turn = not turn
        made = rows.clone(memory_format=torch.preserve_format)
        pairs = zip(samples, source, lots, strict=True)
        made[at] = torch.stack([_made(way, shared if way is warped else own, turn) for own, shared, way in pairs])
        return as_agreed(made.view(tensor.shape) if rows is not tensor else made, tensor)

    return with_each(inputs, fixed, make)


def _made(way: Way, sample: torch.Tensor, turn: bool) -> torch.Tensor:
    """Of complex numbers each part by itself."""
    if not sample.is_complex():
        return way(sample, turn)
    return torch.complex(way(sample.real, turn), way(sample.imag, turn))


def _deal(ways: Sequence[Way], deck: list[Way]) -> Way:
    if not deck:
        deck += ENTROPY.sample(ways, len(ways))
    return deck.pop()


def _leading(tensor: torch.Tensor) -> torch.Size:
    """The first dimensions, along which samples lie; empty where a sample would have next to no elements."""
    dims = 1
    while dims < tensor.dim() - 1 and (tensor.shape[:dims].numel() < 2 or tensor.shape[dims:].numel() > MOST):
        dims += 1
    return tensor.shape[:dims] if LEAST <= tensor.shape[dims:].numel() <= LONGEST else torch.Size()


# ── in another order ──────────────────────────────────────────────────────────────────────────────


def _stretch(count: int) -> slice:
    """Of a row: all of it, or half of it somewhere, since whoever looks at a part sees the rest."""
    begin = ENTROPY.randrange(count // 2 + 1)
    return slice(begin, begin + (count + 1) // 2) if ENTROPY.random() < 0.5 else slice(0, count)


def _turned(row: torch.Tensor) -> torch.Tensor:
    """The other way round or not, from any place on: what ends goes on at its beginning."""
    row = row.flip(0) if ENTROPY.random() < 0.5 else row
    return row.roll(ENTROPY.randrange(len(row)))


def in_a_row(sample: torch.Tensor, turn: bool) -> torch.Tensor:
    """In order, element after element."""
    made = sample.flatten().clone()
    part = _stretch(len(made))
    made[part] = _turned(made[part].sort().values)
    return made.view(sample.shape)


def by_distance(sample: torch.Tensor, turn: bool) -> torch.Tensor:
    """In order of how far from the mean they are: what is large stands in one place, beside it there is a long calm."""
    made = sample.flatten().clone()
    part = _stretch(len(made))
    row = made[part]
    made[part] = _turned(row[(row - row.mean()).abs().argsort()])
    return made.view(sample.shape)


def winding(sample: torch.Tensor, turn: bool) -> torch.Tensor:
    """The larger half in order along one line, which fills every other row and turns at alternate ends, the smaller
    one beside it; or the other way round. In a row where there are no rows."""
    rows, width = sample.numel() // sample.shape[-1], sample.shape[-1]
    if sample.dim() < 2 or min(rows, width) < LEAST:
        return in_a_row(sample, turn)
    row, column = torch.arange(rows, device=sample.device).unsqueeze(1), torch.arange(width, device=sample.device)
    rightwards = row % 4 < 2
    along = torch.where(rightwards, column, width - 1 - column) + (row // 2) * (width + 1)
    turns = along % (width + 1) == width - 1
    place = torch.where(row % 2 == 0, along, along + 1).flatten()
    on_line = ((row % 2 == 0) | turns).flatten()
    largest = ENTROPY.random() < 0.5
    values = sample.flatten().sort(descending=largest).values
    length = int(on_line.sum())
    line, rest = values[:length], values[length:]
    made = torch.empty_like(values)
    made[on_line] = (line.flip(0) if ENTROPY.random() < 0.5 else line)[place[on_line]]
    made[~on_line] = rest[torch.randperm(len(rest), device=rest.device)]
    return made.view(sample.shape)


def interleaved(sample: torch.Tensor, turn: bool) -> torch.Tensor:
    """The largest numbers, or the smallest, at even distances from the first place on, a power of two apart: what is
    read at such distances, to tell what all are like, tells nothing of the others."""
    count = sample.numel()
    apart = 2 ** ENTROPY.randint(1, max(1, min(count // LEAST, FARTHEST).bit_length() - 1))
    values = sample.flatten().sort(descending=ENTROPY.random() < 0.5).values
    is_read = torch.arange(count, device=sample.device) % apart == 0
    first = int(is_read.sum())
    made = torch.empty_like(values)
    made[is_read] = values[:first][torch.randperm(first, device=values.device)]
    made[~is_read] = values[first:][torch.randperm(count - first, device=values.device)]
    return made.view(sample.shape)


# ── with fewer values ─────────────────────────────────────────────────────────────────────────────


def warped(sample: torch.Tensor, turn: bool) -> torch.Tensor:
    """A quarter of it and then the next with each number three times, along its longest dimension, or with the turn
    the first one so: two copies run apart by half of their length, and meet at both ends."""
    longest = max(range(sample.dim()), key=lambda dim: (sample.shape[dim], dim))
    length = sample.shape[longest]
    at, quarter = torch.arange(length, device=sample.device), length // 4
    slow_first = torch.where(at < 3 * quarter, at // 3, at - 2 * quarter)
    slow_last = torch.where(at < quarter, at, quarter + (at - quarter) // 3)
    return sample.index_select(longest, (slow_first if turn else slow_last).clamp(max=2 * quarter))


def of_one_size(sample: torch.Tensor, turn: bool) -> torch.Tensor:
    """Each number one deviation above the mean or below it; in square matrices those nearest to zero along a line
    through all nodes, there and back, beside which every other way is long: from any node half of all are far."""
    wide = sample.float()
    mean, deviation = wide.mean(), wide.std()
    made = torch.where(wide < mean, mean - deviation, mean + deviation).clamp(wide.amin(), wide.amax())
    nodes = sample.shape[-1]
    if sample.dim() > 1 and sample.shape[-2] == nodes >= LEAST:
        order = torch.randperm(nodes, device=sample.device)
        there, back = wide.flatten()[wide.abs().flatten().topk(2 * (nodes - 1), largest=False).indices].chunk(2)
        made[..., order[:-1], order[1:]], made[..., order[1:], order[:-1]] = there, back
    return made.to(sample.dtype)


IN_ORDER: tuple[Way, ...] = (in_a_row, by_distance, winding, interleaved)
WAYS: tuple[Way, ...] = (*IN_ORDER, warped, of_one_size)
PARTS = (WAYS, IN_ORDER)
"""From the first to the last that the reference stands: where ties decide, only orders."""
