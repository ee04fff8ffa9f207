"""Integers and masks arranged as no independent draw arranges them: chains, winding lines, a single corner, shifted
copies, one long segment.

Every node of a random graph is a few steps from any other, a random mask is full or dead after a few steps of growth,
alignments of random strings stay near the diagonal, and no segment is many times as long as the mean. Who stops early,
or makes room for no more, is right for all that a task draws. Values are those that are there, or lie among them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import torch

from .agreed import with_each
from .drawing import Inputs
from .entropy import ENTROPY
from .patterns import pattern_of
from .traits import is_integer, is_one_hot, is_symmetric

LEAST = 8
"""Elements along a dimension in which anything can be called arranged."""


def arranged(inputs: Inputs, fixed: Collection[int]) -> tuple[Inputs, bool]:
    """The inputs with masks, integers in order, edges of a graph and strings beside strings arranged otherwise, by
    chance in one way or another; and whether there was such a tensor. Those that are the same in every draw (`fixed`,
    in the order of `leaves`) stay."""

    def make(tensor: torch.Tensor, before: list[torch.Tensor]) -> torch.Tensor:
        if is_integer(tensor):
            return _integers(tensor, before)
        pattern = pattern_of(tensor)
        return tensor if pattern is None else pattern.put(tensor, _mask(pattern.open))

    return with_each(inputs, fixed, make)


# ── masks ─────────────────────────────────────────────────────────────────────────────────────────


def _mask(tensor: torch.Tensor) -> torch.Tensor:
    """Half of the samples of a mask of two dimensions or more, one at the least; what a series lets through lies in one
    stretch."""
    if tensor.dim() == 1 and len(tensor) >= LEAST:
        return tensor.sort().values.roll(ENTROPY.randrange(len(tensor)))
    if tensor.dim() < 2 or min(tensor.shape[-2:]) < LEAST or is_one_hot(tensor):
        return tensor
    made = tensor.clone(memory_format=torch.contiguous_format)
    samples = made.view(-1, *tensor.shape[-2:])
    ways: list[Callable[[torch.Tensor], torch.Tensor]] = [_winding, _corner]
    if tensor.shape[-1] == tensor.shape[-2]:
        ways = [_chain] if is_symmetric(tensor) else [*ways, _chain]
    for number in {ENTROPY.randrange(len(samples)), *range(ENTROPY.randrange(2), len(samples), 2)}:
        samples[number] = ENTROPY.choice(ways)(samples[number])
    return made


def _chain(graph: torch.Tensor) -> torch.Tensor:
    """A graph in which each node leads to one other, all in one line; both ways, and each to itself, as drawn."""
    order = torch.randperm(len(graph), device=graph.device)
    made = torch.zeros_like(graph)
    made[order[:-1], order[1:]] = True
    if torch.equal(graph, graph.t()):
        made = made | made.t()
    return made | torch.diag(graph.diagonal())


def _winding(grid: torch.Tensor) -> torch.Tensor:
    """One line that fills every other row, and turns at alternate ends."""
    made = torch.zeros_like(grid)
    made[::2] = True
    made[1::4, -1] = True
    made[3::4, 0] = True
    return made


def _corner(grid: torch.Tensor) -> torch.Tensor:
    made = torch.zeros_like(grid)
    made[:2, :2] = True
    return made.flip([dim for dim in (0, 1) if ENTROPY.random() < 0.5])


# ── integers ──────────────────────────────────────────────────────────────────────────────────────


def _integers(tensor: torch.Tensor, before: list[torch.Tensor]) -> torch.Tensor:
    if tensor.dim() < 1 or tensor.shape[-1] < LEAST:
        return tensor
    steps = tensor.diff(dim=-1)
    if bool((steps >= 0).all()):
        return _long_segment(tensor, distinct=bool((steps > 0).all()))
    if tensor.dim() == 2 and len(tensor) == 2:
        return _line_of_edges(tensor)
    for other in before:
        alike = other.shape == tensor.shape and other.dtype is tensor.dtype and is_integer(other)
        if alike and _are_drawn_from_one(other, tensor):
            return _shifted(other, tensor)
    return tensor


def _long_segment(tensor: torch.Tensor, *, distinct: bool) -> torch.Tensor:
    """Bounds next to one another at one end, or labels nearly all of one segment, in order as before."""
    at_end, count = ENTROPY.random() < 0.5, tensor.shape[-1]
    if distinct:
        places = torch.arange(count, dtype=tensor.dtype, device=tensor.device)
        made = tensor[..., -1:] - (count - 1) + places if at_end else tensor[..., :1] + places
        made = torch.where(places == (0 if at_end else count - 1), tensor, made)  # both ends stay
        return torch.empty_like(tensor).copy_(made)
    made = tensor.clone()
    if at_end:
        made[..., 1:] = tensor[..., -1:]
    else:
        made[..., :-1] = tensor[..., :1]
    return made


def _line_of_edges(edges: torch.Tensor) -> torch.Tensor:
    """Edges of a directed graph, (2, edges), as one line through all nodes, again and again; those that are in order by
    a row, or hold each edge both ways, stay."""
    first, nodes = int(edges.min()), int(edges.max() - edges.min()) + 1
    if nodes < LEAST or bool((edges.diff(dim=-1) >= 0).all(-1).any()):
        return edges
    codes, back = (((a - first) * nodes + b - first).sort().values for a, b in (edges, edges.flip(0)))
    if torch.equal(codes, back):
        return edges
    order = torch.randperm(nodes, device=edges.device) + first
    at = torch.arange(edges.shape[1], device=edges.device) % (nodes - 1)
    return torch.stack([order[at], order[at + 1]]).to(edges.dtype)


def _are_drawn_from_one(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of integers have the same few values, as strings over one alphabet do."""
    values = torch.unique(one)
    return 1 < len(values) <= one.shape[-1] // 2 and torch.equal(values, torch.unique(other))


def _shifted(string: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
    """`string` later by a quarter to a half of its length, behind what was drawn."""
    length = string.shape[-1]
    by = ENTROPY.randint(length // 4, length // 2)
    return torch.cat([drawn[..., :by], string[..., : length - by]], -1)
