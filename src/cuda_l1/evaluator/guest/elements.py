"""What is asked of answers and their truth element by element: range, infinities, and where they jump."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from . import oracle

MORE_JUMPS = 3
"""Jumps that an answer may have beyond `multiple` times the reference's."""
FAR = 1e-6
"""How far an element of the answer has to be moved by `perturbations.TOLD_APART` to be another one, as a share of the
answer's root mean square: far more than the inputs were."""


def crosses(new: torch.Tensor, plain: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """Where `new` lies more than half of the way from `plain` to truth away from `plain`."""
    new, plain, truth = (oracle.wide(t) for t in (new, plain, truth))
    return (new - plain).abs() > 0.5 * (truth - plain).abs()


def rounds_to_other(answer: torch.Tensor, truth: torch.Tensor) -> bool:
    """Whether an answer of integers differs from truth: what was rounded or selected lay on the edge."""
    exact = not (answer.is_floating_point() or answer.is_complex())
    return exact and not torch.equal(answer, truth.to(answer.dtype))


def within_range(truth: torch.Tensor, size: oracle.Size, dtype: torch.dtype) -> torch.Tensor:
    """Truth of that size as far as the dtype of the answer holds it: beyond its largest number lies infinity."""
    if not dtype.is_floating_point or not truth.is_floating_point():
        return truth
    largest = torch.finfo(dtype).max
    if size.largest < 0.5 * largest:
        return truth
    if not any(bool((part.abs() > largest).any()) for (part,) in oracle.parts(truth)):
        return truth
    return torch.where(truth.abs() > largest, truth.sign() * math.inf, truth)


def lies_beyond(in_range: torch.Tensor, truth: torch.Tensor) -> bool:
    """Whether truth is finite somewhere and infinite where it is held by the answer's dtype."""
    return bool((torch.isinf(in_range) & torch.isfinite(truth)).any())


def unjudged(answer: torch.Tensor, size: oracle.Size, truth: torch.Tensor) -> torch.Tensor | None:
    """The few elements in which the reference itself, whose answer is of that size, overflows on its way to a finite
    truth: its error there would allow everything everywhere. None where there are none, or too many to leave out."""
    if not answer.is_floating_point() or math.isfinite(size.largest) or oracle.all_finite(answer):
        return None
    mask = ~torch.isfinite(answer) & torch.isfinite(truth)
    return mask if 0 < int(mask.sum()) <= oracle.most_isolated(mask.numel()) else None


FEW_INFINITE = 1 / 8
"""Up to this share of an answer may be infinite, such as the logarithms of few zeros that a trial puts among inputs:
what whole rows with infinities give depends on the order in which it is computed."""


def is_infinite_alike(answer: torch.Tensor, truth: torch.Tensor) -> bool:
    """Whether the reference answers infinity where truth is, and nowhere else, in few places; neither holds NaN."""
    infinite = torch.isinf(truth)
    if int(infinite.sum()) > FEW_INFINITE * truth.numel():
        return False
    return torch.equal(torch.where(infinite, truth, 0.0), torch.where(torch.isfinite(answer), 0.0, answer).to(truth))


def moved_far(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Which elements of one answer are others in the other, as far as float32 tells."""
    if one.is_floating_point() or one.is_complex():
        return (one != other) & ~((one - other).abs() <= FAR * oracle.rms_of(one))
    return one != other


FARTHER = 16
"""How many times as far from truth as another answer one may be to be as far."""


def is_as_far(new: torch.Tensor, others: Sequence[torch.Tensor], truth: torch.Tensor, bound: float) -> bool:
    """Whether an answer errs by more than `bound` only where any of these others does, and is no farther from truth
    there than they are at the most, up to `FARTHER` times."""
    errs = oracle.element_errors(new, truth) > bound
    theirs = torch.stack([oracle.element_errors(other, truth) > bound for other in others]).any(0)
    if bool((errs & ~theirs).any()):
        return False
    far = (oracle.wide(new) - oracle.wide(truth)).abs()[errs]
    most = torch.stack([(oracle.wide(other) - oracle.wide(truth)).abs()[theirs].max() for other in others]).max()
    return bool((far <= FARTHER * most).all())


def ends(low: torch.Tensor, high: torch.Tensor, new: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """`low` and `high` element by element, with `new` among them; complex numbers in pairs."""
    if new.is_complex():
        real = [torch.view_as_real(t.contiguous()) for t in (low, high, new)]
        low, high = ends(*real)
        return torch.view_as_complex(low), torch.view_as_complex(high)
    return torch.minimum(low, new), torch.maximum(high, new)
