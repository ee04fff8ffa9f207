"""How far an answer lies from truth.

The error of a tensor is the maximum over its elements of |x - truth| / (|truth| + rms(truth)), with rms over the finite
elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from . import last_of_equal
from .classes import OWN
from .dispatch import DispatchMode
from .reading import hosted, is_waited_for, read, read_each
from .tensors import leaves


def element_errors(answer: torch.Tensor, truth: torch.Tensor, rms: torch.Tensor | float | None = None) -> torch.Tensor:
    """|x - truth| / (|truth| + rms(truth)) per element, float64; infinite where a non-finite element differs in kind or
    sign, and where rms is 0 any difference is infinite. `rms` is that of the whole truth when slices are given."""
    size = rms_of(truth) if rms is None else rms
    if not is_waited_for(truth):
        error = _element_errors(answer, truth, size, finite=True)
        if bool(torch.isfinite(error.sum())):  # then all is, and the rest has no effect
            return error
    return _element_errors(answer, truth, size, finite=False)


def _element_errors(
    answer: torch.Tensor, truth: torch.Tensor, rms: torch.Tensor | float, *, finite: bool
) -> torch.Tensor:
    """`finite`: as they are where all of them are finite, and not finite in sum where any is not."""
    x, t = wide(answer), wide(truth)
    if finite:
        return (x - t).abs() / (t.abs() + rms)
    is_number = torch.isfinite(t)
    error = (x - t).abs() / (torch.where(is_number, t.abs(), 0.0) + rms)
    same = (x == t) | (torch.isnan(x) & torch.isnan(t))
    error = torch.where(is_number & torch.isfinite(x), error, math.inf)
    return torch.where(same, 0.0, torch.where(torch.isnan(error), math.inf, error))


def rms_of(tensor: torch.Tensor) -> torch.Tensor:
    """Root mean square of the finite elements, float64 scalar."""
    if not is_waited_for(tensor):
        norm = _norm_of(tensor, lambda values: values)
        if bool(torch.isfinite(norm)):
            return norm / math.sqrt(max(1, _count(tensor)))
    finite = torch.stack([torch.isfinite(wide(part)).sum() for (part,) in parts(tensor)]).sum()
    norm = _norm_of(tensor, lambda values: torch.where(torch.isfinite(values), values, 0.0))
    return norm / finite.clamp(min=1).double().sqrt()


@dataclass(frozen=True)
class Size:
    """How large the elements of a tensor are."""

    rms: float
    """See `rms_of`."""
    largest: float
    """No element is larger; infinite where one is not finite, or where that is not known."""


NO_SIZE = Size(0.0, 0.0)
"""Of integers, which nobody asks."""


def sizes_of(tensors: Sequence[torch.Tensor]) -> list[Size]:
    """Of each tensor, with one wait for a GPU in all where all is finite."""
    asked = [t for t in tensors if not is_exact(t)]
    norms = iter(read(*(_norm_of(t, lambda values: values) for t in asked)))
    return [NO_SIZE if is_exact(t) else _size_of(t, next(norms)) for t in tensors]


def _size_of(tensor: torch.Tensor, norm: float) -> Size:
    if not math.isfinite(norm):
        return Size(float(rms_of(tensor)), math.inf)
    return Size(norm / math.sqrt(max(1, _count(tensor))), norm)


def _count(tensor: torch.Tensor) -> int:
    """Of real numbers."""
    return tensor.numel() * (2 if tensor.is_complex() else 1)


def _norm_of(tensor: torch.Tensor, made: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    norms = [torch.linalg.vector_norm(made(wide(part))) for (part,) in parts(tensor)]
    norm: torch.Tensor = torch.linalg.vector_norm(torch.stack(norms)) if len(norms) > 1 else norms[0]
    return norm


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """As float64; complex numbers as pairs in a new last dimension."""
    if tensor.is_complex():
        return torch.view_as_real(tensor.to(torch.complex128))
    return tensor.to(torch.float64)


def is_exact(tensor: torch.Tensor) -> bool:
    """Whether it holds integers or truth values, which are right or wrong."""
    return not (tensor.is_floating_point() or tensor.is_complex())


WHOLE = 1 << 25
"""Elements up to which a tensor is looked at whole, and not in parts."""


def parts(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """Slices of tensors of one shape: float64 copies of large ones whole would not fit beside the model."""
    shape = tensors[0].shape
    count = math.ceil(shape.numel() / WHOLE)
    if count <= 1:
        yield tensors
        return
    dim = next((d for d, size in enumerate(shape) if size >= count), max(range(len(shape)), key=shape.__getitem__))
    step = math.ceil(shape[dim] / count)
    for start in range(0, shape[dim], step):
        yield tuple(t.narrow(dim, start, min(step, shape[dim] - start)) for t in tensors)


def all_finite(tensor: torch.Tensor) -> bool:
    """Whether no element is infinite or NaN."""
    return all(are_finite([tensor]))


def are_finite(tensors: Sequence[torch.Tensor]) -> list[bool]:
    """Of each tensor whether no element is infinite or NaN, with one wait for a GPU in all."""
    found = [[torch.isfinite(part).all() for (part,) in parts(tensor)] for tensor in tensors]
    return [all(truths) for truths in read_each(found)]


def max_error(
    answer: torch.Tensor,
    truth: torch.Tensor,
    leave_out: torch.Tensor | None = None,
) -> float:
    """The largest element error, elements in `leave_out` (bool, same shape) not counted; 0.0 for empty tensors.

    Integer and boolean answers are right (0.0) or wrong (inf).
    """
    if answer.numel() == 0:
        return 0.0
    if is_exact(truth) or is_exact(answer):
        differs = answer != truth.to(answer.dtype)
        return math.inf if bool((differs if leave_out is None else differs & ~leave_out).any()) else 0.0
    if leave_out is not None and truth.is_complex():
        leave_out = leave_out.unsqueeze(-1)  # errors are in pairs
    rms, worst = rms_of(truth), 0.0
    for got, due, *out in parts(answer, truth, *([] if leave_out is None else [leave_out])):
        found = element_errors(got, due, rms)
        worst = max(worst, float((found.masked_fill(out[0], 0.0) if out else found).max()))
    return worst


@dataclass(frozen=True)
class KnownTruth:
    """A tensor of truth, and what is known of it before any answer is held against it."""

    truth: torch.Tensor
    size: Size
    places: Places
    """Elements that stand for all in the bulk and in the slices."""
    thin: torch.Tensor
    """Truth at these."""
    thin_size: Size

    @classmethod
    def of_each(
        cls, truths: Sequence[torch.Tensor], chosen: Sequence[Places], beside: Sequence[torch.Tensor] = ()
    ) -> tuple[list[KnownTruth], list[Size]]:
        """And the sizes of the tensors `beside`; with one wait for a GPU in all where all is finite. `chosen`: a
        `lattice` of each."""
        pairs = zip(truths, chosen, strict=True)
        places = [[at.to(t.device, non_blocking=t.is_cuda) for at in each] for t, each in pairs]
        thin = [thinned(*pair) for pair in zip(truths, places, strict=True)]
        fewer = [few for few, truth in zip(thin, truths, strict=True) if few is not truth]
        sizes = sizes_of([*truths, *fewer, *beside])
        of_fewer = iter(sizes[len(truths) :])
        several = zip(truths, sizes[: len(truths)], places, thin, strict=True)
        known = [cls(t, size, at, few, size if few is t else next(of_fewer)) for t, size, at, few in several]
        return known, list(of_fewer)

    @property
    def is_finite(self) -> bool:
        """Whether truth is."""
        return math.isfinite(self.size.largest) or all_finite(self.truth)

    @property
    def is_usual(self) -> bool:
        """Whether errors of right answers are finite as they are."""
        return all(size.rms > 0.0 and math.isfinite(size.largest) for size in (self.size, self.thin_size))

    def figures(
        self, answer: torch.Tensor, left_out: torch.Tensor | None, *, finite: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Float64, where the answer is: (3,) what is finite where all errors are, `max_error` without what is
        `left_out`, and the error that the bulk stays below; and `slice_errors`, where what is left out counts as right.
        `finite`: right where the first of these is finite, and else to be asked for again."""
        none = torch.zeros(0, dtype=torch.float64, device=answer.device)
        if answer.numel() == 0:
            return none.new_zeros(3), none
        if is_exact(self.truth) or is_exact(answer):
            differs = answer != self.truth.to(answer.dtype)
            wrong = (differs if left_out is None else differs & ~left_out).any()
            return torch.stack([none.sum(), torch.where(wrong, math.inf, 0.0).double(), none.sum()]), none
        thin = thinned(answer, self.places)
        few = _element_errors(thin, self.thin, self.thin_size.rms, finite=finite)
        total, worst = few.sum(), none.sum()
        for got, due, *out in parts(answer, self.truth, *([] if left_out is None else [left_out])):
            errors = few if thin is answer else _element_errors(got, due, self.size.rms, finite=finite)
            total = total if errors is few else total + errors.sum()
            worst = torch.maximum(worst, (self._without(errors, out[0]) if out else errors).max())
        bulk = few.flatten().kthvalue(max(1, round(BULK * few.numel()))).values
        if left_out is not None:
            thin = torch.where(thinned(left_out, self.places), self.thin.to(thin.dtype), thin)
        return torch.stack([total, worst, bulk]), slice_errors(thin, self.thin, finite=finite)

    def _without(self, errors: torch.Tensor, left_out: torch.Tensor) -> torch.Tensor:
        """Errors of complex numbers are in pairs."""
        return errors.masked_fill(left_out.unsqueeze(-1) if self.truth.is_complex() else left_out, 0.0)


def errors_of(
    known: Sequence[KnownTruth], answers: Sequence[torch.Tensor], left_out: Sequence[torch.Tensor | None]
) -> list[tuple[float, float, torch.Tensor]]:
    """For each tensor of an answer its largest error, that which the bulk stays below, and those of slices; with one
    wait for a GPU in all, or two where one is not finite and truth is. What is `left_out` counts as right."""
    trios = list(zip(known, answers, left_out, strict=True))
    figures = hosted([f for truth, got, out in trios for f in truth.figures(got, out, finite=truth.is_usual)])
    pairs = list(zip(figures[::2], figures[1::2], strict=True))
    for index, (truth, got, out) in enumerate(trios):
        if truth.is_usual and not math.isfinite(pairs[index][0][0]):
            again, slices = hosted(truth.figures(got, out, finite=False))
            pairs[index] = again, slices
    return [(float(worst), float(bulk), slices) for (_, worst, bulk), slices in pairs]


_SHUFFLED = 1 << 20
"""Numbers up to which all are shuffled to choose some of them."""
LATTICE = 1 << 16
"""Where a statistic needs no whole tensor, at most so many of its elements are looked at."""


Places = list[torch.Tensor]
"""Positions along each dimension of a tensor, in order."""


def lattice(shape: torch.Size, limit: int = LATTICE) -> Places:
    """Positions along each dimension that span at most `limit` elements. Whole rows and columns of a grid, since
    elements that share a random number tend to share an index. Drawn by the global generator."""
    counts = list(shape)
    while math.prod(counts) > limit:
        longest = max(range(len(counts)), key=counts.__getitem__)
        counts[longest] = (counts[longest] + 1) // 2
    return [_some_of(size, count) for size, count in zip(shape, counts, strict=True)]


def _some_of(size: int, count: int) -> torch.Tensor:
    """`count` of the numbers below `size`, in order; a few less where shuffling all of them would take long."""
    if size <= _SHUFFLED:
        return torch.randperm(size)[:count].sort().values
    chosen: torch.Tensor = torch.unique(torch.randint(size, (count,)))
    return chosen


def thinned(tensor: torch.Tensor, places: Places) -> torch.Tensor:
    """The elements of a tensor at a `lattice` of its shape; one that has no more elements than that is one already."""
    if tensor.shape == torch.Size(len(chosen) for chosen in places):
        return tensor
    for dim, chosen in enumerate(places):
        if len(chosen) < tensor.shape[dim]:
            tensor = tensor.index_select(dim, chosen.to(tensor.device, non_blocking=tensor.is_cuda))
    return tensor


BULK = 0.9
"""The share of elements whose error stays below that of the bulk."""


LEAST_SLICE = 32
"""Elements of a slice: a part of a tensor is lost, one element is only as exact as the tensor's size makes it."""

_BLOCK, _BLOCKS = 64, 64
"""Elements of a block of a flat tensor at the least, and blocks at the most: a number alone may be small by chance."""


def _in_blocks(tensor: torch.Tensor) -> torch.Tensor:
    """Of consecutive elements along the first dimension: (blocks, elements, ...), the last one filled up with zeros."""
    size = max(_BLOCK, math.ceil(len(tensor) / _BLOCKS))
    count = math.ceil(len(tensor) / size)
    filled = torch.cat([tensor, tensor.new_zeros(count * size - len(tensor), *tensor.shape[1:])])
    return filled.reshape(count, size, *tensor.shape[1:])


def slice_errors(answer: torch.Tensor, truth: torch.Tensor, *, finite: bool = False) -> torch.Tensor:
    """For every slice along every dimension: its largest |x - truth| over its largest |truth|, float64.

    Against the root mean square of a whole tensor, slices that are small beside others may hold anything. Neighbours
    count as one slice where they have fewer than `LEAST_SLICE` elements each, as the rows of a column have; a tensor of
    one dimension is cut into blocks. 0 where a slice of truth is zero (or as small as denormal numbers). `finite`: all
    of both is.
    """
    few = answer.numel() == 0 or (answer.dim() < 2 and answer.numel() < 2 * _BLOCK)
    if few or is_exact(truth) or is_exact(answer):
        return torch.zeros(0, dtype=torch.float64, device=truth.device)
    x, t = wide(answer), wide(truth)
    error, size = (x - t).abs(), t.abs()
    if not finite:
        counts = torch.isfinite(t)
        error, size = torch.where(counts, error, 0.0), torch.where(counts, size, 0.0)
        error = torch.where(torch.isfinite(error), error, math.inf)
    found, dims = [], range(t.dim())
    if answer.dim() == 1:
        error, size, dims = _in_blocks(error), _in_blocks(size), range(1)
    for dim in dims:
        others = [d for d in range(error.dim()) if d != dim]
        together = math.ceil(LEAST_SLICE * error.shape[dim] / error.numel())
        worst, largest = (_largest_of_groups(values.amax(others), together) for values in (error, size))
        found.append(torch.where(largest > 1e-30, worst / largest.clamp(min=1e-30), 0.0))
    return torch.cat(found)


def _largest_of_groups(values: torch.Tensor, least: int) -> torch.Tensor:
    """The largest of each `least` neighbours, or a few more."""
    if least == 1:
        return values
    groups = max(1, len(values) // least)
    return torch.nn.functional.adaptive_max_pool1d(values.view(1, 1, -1), groups).flatten()


def are_dealt_alike(got: torch.Tensor, due: torch.Tensor, bound: float) -> bool:
    """Whether two tensors of real numbers hold the same in whatever order, up to `bound`. Of large ones, which would
    take many times their own memory to sort, as far as a sample of each tells."""
    if got.shape != due.shape or got.is_complex() or due.is_complex():
        return False
    if got.numel() > WHOLE:
        is_number = all_finite(got) and all_finite(due)
        return is_number and _reaches_up(got, due, bound) and _reaches_up(due, got, bound)
    ones, others = (tensor.double().flatten().sort().values for tensor in (got, due))
    return bool((ones - others).abs().max() <= bound)


def _reaches_up(low: torch.Tensor, high: torch.Tensor, bound: float) -> bool:
    """Whether the k-th smallest element of `low` is at most `bound` above the k-th smallest of `high`, for each k at
    which an element of a random sample of `high`, or one of its two ends, stands. Both finite and of one shape."""
    sample = high.flatten()[torch.randint(high.numel(), (LATTICE,), device=high.device)].double()
    ends = [end.view(1) for (part,) in parts(high) for end in part.double().aminmax()]
    numbers = torch.cat([sample, *ends]).sort().values
    return bool((_at_most(low, numbers + bound) >= _at_most(high, numbers)).all())


def _at_most(tensor: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """How many elements are at most as large as each of `numbers`, which rise, counted part by part."""
    found = numbers.new_zeros(len(numbers) + 1, dtype=torch.int64)
    for (part,) in parts(tensor):
        found += torch.searchsorted(numbers, part.double().flatten()).bincount(minlength=len(found))
    return found.cumsum(0)[:-1]


_EDGES = {
    *("round", "floor", "ceil", "trunc", "sign", "frac", "fmod", "remainder", "floor_divide", "heaviside"),
    *("bucketize", "searchsorted", "lt", "le", "gt", "ge"),
}
"""Operations that have edges: floating numbers a roundoff apart may have answers far apart."""


class Choices(DispatchMode):
    """`with Choices() as seen: ...`; `seen.found` says whether anything was chosen by its place, `seen.edges` whether
    anything was, or was rounded or compared; `seen.half` which half precision anything was computed in, if any."""

    def __init__(self) -> None:
        super().__init__()
        self.found = self.edges = False
        self.half: torch.dtype | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        self.found |= last_of_equal.chooses(func, made)
        self.edges |= self.found or _has_edges(func, made, args, kwargs or {})
        if self.half is not torch.bfloat16:  # beside which float16 is exact
            self.half = next((t.dtype for t in leaves(made) if t.dtype in OWN), self.half)
        return made


def _has_edges(func: Any, made: Any, args: Any, kwargs: dict[str, Any]) -> bool:
    if not (args and isinstance(args[0], torch.Tensor) and args[0].is_floating_point()):
        return False
    casts = isinstance(made, torch.Tensor) and func is torch.ops.aten._to_copy.default
    rounds_to = made.dtype if casts else args[0].dtype
    is_cast = rounds_to.itemsize == 1 or not (rounds_to.is_floating_point or rounds_to.is_complex)
    name = func.overloadpacket.__name__.removesuffix("_")
    return is_cast or name in _EDGES or kwargs.get("rounding_mode") is not None


@dataclass(frozen=True)
class Jumps:
    """Where an answer and truth differ by isolated jumps (rounding, argmax, routing) and not by noise."""

    mask: torch.Tensor
    count: int


def bulk(errors: torch.Tensor, share: float) -> torch.Tensor:
    """What this share of the elements stays below; 1.0 stands for infinite errors."""
    flat = errors.flatten()
    sample = flat[:: max(1, flat.numel() // 100_000)]
    return torch.nan_to_num(sample, posinf=1.0).quantile(share) if flat.numel() else flat.sum()


def find_jumps(answer: torch.Tensor, truth: torch.Tensor, floor: float = 2e-5) -> Jumps:
    """Elements that differ by more than `floor` and by far more than the bulk does; none when they are not isolated
    (`most_isolated`).

    By their own size too, since where a few elements are much larger than the rest (exp) only these differ visibly.
    """
    if not is_exact(truth):
        errors = element_errors(answer, truth)
        mask = errors > (64 * bulk(errors, 0.95)).clamp(min=floor)
        may_jump = bool(mask.any())
        if may_jump:
            smallness = torch.nan_to_num(rms_of(truth) / wide(truth).abs(), posinf=math.inf)
            own = torch.where(errors > 0, errors * (1 + smallness), 0.0)
            mask &= own > 64 * bulk(own, 0.95)
        mask = mask.any(-1) if truth.is_complex() else mask
    else:
        mask, may_jump = answer != truth.to(answer.dtype), True
    count = int(mask.sum()) if may_jump else 0
    if count > most_isolated(mask.numel()):
        return Jumps(torch.zeros_like(mask), 0)
    return Jumps(mask, count)


INNER = 0.25
"""The largest share of an answer that differs by jumps of what it is made of: one quantised number that crosses an edge
moves a row of products, one quantised weight a column."""


@dataclass(frozen=True)
class InnerJumps:
    """Where an answer and truth differ by such jumps."""

    mask: torch.Tensor
    count: int
    beyond: float
    """The error that rounding explains."""


def find_inner_jumps(
    answer: torch.Tensor, truth: torch.Tensor, floor: float = 2.0**-20, *, apart: float = 16
) -> InnerJumps:
    """Elements of floating numbers that differ by more than `floor` and by `apart` times what most do; none when they
    are more than the share `INNER`."""
    errors = element_errors(answer, truth)
    beyond = max(floor, apart * float(bulk(errors, 1 - INNER)))
    mask = errors > beyond
    mask = mask.any(-1) if truth.is_complex() else mask
    count = int(mask.sum())
    if count > max(3, INNER * mask.numel()):
        return InnerJumps(torch.zeros_like(mask), 0, beyond)
    return InnerJumps(mask, count, beyond)


def most_isolated(numel: int) -> float:
    """How many elements of so many may jump and still be called isolated."""
    return max(3, 0.02 * numel)
