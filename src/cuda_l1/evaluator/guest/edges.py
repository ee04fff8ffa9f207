"""Where an answer lies on an edge: what the reference gives there when its inputs and weights are moved a little."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from . import elements, oracle

MOVES, MOVES_IN_TF32 = 24, 8
"""Answers of the reference to moved inputs and weights, and with operands rounded to TF32 by chance, among which an
element that jumped is looked for."""
ROUNDING = 32
"""How many times what the reference's own rounding explains a move does at the most: it goes as many roundoffs, and
where more than `oracle.INNER` of an answer jumps what most elements differ by is no rounding."""
LEAST_MOVES = range(3, MOVES + 1, 3)
"""Those by the least, which take few elements across an edge."""
NOISE = 16
"""How many times what half of these move an element by rounding explains there at the most."""
MET = 0.5
"""The share of the reference's own jumps that moves have to undo to show where edges are."""


@dataclass
class Edges:
    """Those of one trial. The reference is moved when an answer asks for it, `MOVES` + `MOVES_IN_TF32` times at the
    most."""

    truth: list[torch.Tensor]
    plain: list[torch.Tensor]
    """What the reference answers in its own arithmetic."""
    jumps: list[oracle.Jumps | None]
    """Of that against truth; None for a tensor that is known to have none."""
    jumpy: bool
    """The task is known to jump."""
    moved: Callable[[int], list[torch.Tensor] | None]
    """What it answers to the first move, the second, ..; None where it refuses what it is given."""
    _ends: list[tuple[torch.Tensor, torch.Tensor]] = field(init=False, default_factory=list)
    """Per tensor the lowest and the highest of its answers so far."""
    _moves: int = field(init=False, default=0)
    _has_moved: bool = field(init=False, default=False)
    """Whether any of these moves had an effect."""
    _crossed: dict[int, torch.Tensor] = field(init=False, default_factory=dict)
    """Per tensor, of the elements that jump in the reference's own answer those that do not in another of these."""

    def reached(self, index: int, got: torch.Tensor, mask: torch.Tensor, *, patient: bool) -> torch.Tensor:
        """The elements in `mask` (bool, of the shape of `got`, an answer's tensor `index`) at which the reference gives
        an answer like this, too, when it is moved; where it is not `patient`, only as far as that is known. In a task
        that jumps all of them where moves hardly take the reference's own answer across an edge, since that is met by
        what it makes itself (shares of routing by logits near zero, each rounded)."""
        if not bool(mask.any()):
            return mask
        value = oracle.wide(got[mask])
        while True:
            low, high = (oracle.wide(end[mask]) for end in self._range(index))
            width = high - low
            inside = (value >= low - width) & (value <= high + width)
            if got.is_complex():
                inside = inside.all(-1)
            if bool(inside.all()) or not (patient and self._move()):
                break
        met = self.jumps[index] is None or self._moves == 0 or self._is_met_by_moves(index)
        return mask.masked_scatter(mask, inside) if met else mask

    def _range(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        if not self._ends:
            pairs = zip(self.truth, self.plain, strict=True)
            self._ends = [elements.ends(t.to(n.dtype), n, n) for t, n in pairs]
        return self._ends[index]

    def jumped_so(self, index: int, got: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The elements in `mask` (bool, of the shape of `got`, an answer's tensor `index`) at which the reference gives
        an answer, when it is moved, that differs from this one by rounding alone; none where in no move so many jump.
        Where a number that crosses an edge moves a row of products, what lies between both rows is no answer."""
        truth, due, met, most = self.truth[index], int(mask.sum()) - elements.MORE_JUMPS, torch.zeros_like(mask), 0
        value, size = got[mask], oracle.rms_of(self.truth[index])
        most_rounding = ROUNDING * oracle.find_inner_jumps(self.plain[index], truth).beyond
        for number in range(1, MOVES + 1):
            if (tensors := self.moved(number)) is None:
                continue
            jumps = oracle.find_inner_jumps(tensors[index], truth)
            near = oracle.element_errors(value, tensors[index][mask], size) <= min(jumps.beyond, most_rounding)
            met[mask] |= near.all(-1) if got.is_complex() else near
            most = max(most, jumps.count)
            if most >= due and bool(met[mask].all()):
                break
        return met if most >= due else torch.zeros_like(mask)

    def ill_conditioned(self, index: int, got: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The elements in `mask` (bool, of the shape of `got`, an answer's tensor `index`) that differ from truth by no
        more than rounding explains where it moves the reference's own answer far, as the logarithm of next to nothing.
        Few elements lie so near an edge that most moves by so little take them across."""
        truth, size = self.truth[index][mask], oracle.rms_of(self.truth[index])
        moves = [tensors for number in LEAST_MOVES if (tensors := self.moved(number)) is not None]
        if not moves:
            return torch.zeros_like(mask)
        moved = torch.stack([oracle.element_errors(tensors[index][mask], truth, size) for tensors in moves])
        explained = oracle.element_errors(got[mask], truth, size) <= NOISE * moved.median(0).values
        return mask.masked_scatter(mask, explained.all(-1) if got.is_complex() else explained)

    def _move(self) -> bool:
        """Widen the ranges by another answer of the reference; False where they were widened often enough."""
        while self._moves < MOVES + MOVES_IN_TF32:
            self._moves += 1
            tensors = self.moved(self._moves)
            if tensors is None:
                continue
            self._has_moved |= any(not torch.equal(a, b) for a, b in zip(tensors, self.plain, strict=True))
            self._note_crossed(tensors)
            self._ends = [elements.ends(*ends, new) for ends, new in zip(self._ends, tensors, strict=True)]
            return True
        return False

    def _note_crossed(self, moved: list[torch.Tensor]) -> None:
        """Note the edges beyond which the reference's own answer lies and an answer of it, moved, does not."""
        for index, (new, plain, truth) in enumerate(zip(moved, self.plain, self.truth, strict=True)):
            if (jumps := self.jumps[index]) is not None and jumps.count:
                crossed = elements.crosses(new[jumps.mask], plain[jumps.mask], truth[jumps.mask])
                before = self._crossed.get(index)
                self._crossed[index] = crossed if before is None else crossed | before

    def _is_met_by_moves(self, index: int) -> bool:
        """Whether the answers of the reference, moved, show where edges are: all together they cross most of those
        beyond which its own lies; where there is none of these, or not all were made, they are other answers at all."""
        crossed = self._crossed.get(index)
        if crossed is None or self._moves < MOVES + MOVES_IN_TF32:
            return self._has_moved or not self.jumpy
        return bool(crossed.double().mean() > MET)
