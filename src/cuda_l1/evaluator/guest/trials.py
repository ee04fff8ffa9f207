"""What is put to a candidate: inputs under secret seeds, stressed inputs, other weights.

Secret seeds come from `os.urandom`: two forked siblings draw the same `torch.rand`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from random import SystemRandom
from typing import Any

import torch

from . import state
from .load import made_on, seed_everything
from .tensors import VECTOR_BYTES, extent, leaves, map_leaves

_random = SystemRandom()
Inputs = list[Any]
Make = Callable[[Inputs], tuple[Inputs, bool]]
"""Makes other inputs of drawn ones, and says whether there was anything to change."""
Part = tuple[tuple[str, ...], ...]
"""Names of a model's state; those of tied tensors are in one tuple."""


@dataclass(frozen=True)
class Plan:
    """One correctness trial before it is run."""

    kind: str
    other_weights: bool = False
    factor: float = 1.0
    """Floating inputs that may be stressed are multiplied by this; with `few` the other values only."""
    offset: int = 0
    """Bytes into their storage at which inputs start, rounded up to an element."""
    same_inputs: bool = False
    """The inputs of the trial before, again."""
    few: bool = False
    """The inputs of the trial before, with other values in a few places only."""
    in_place: bool = False
    """Other contents under the tensors that the trial before looked at."""
    in_forms: bool = False
    """Made in several forms, of which the first that the reference stands counts."""
    touches: Part = ()
    """What is touched of the weights of the trial before, whose inputs come again."""
    exchanged: bool = True
    """Touched elements are in each other's places, else other numbers."""

    @property
    def may_tie(self) -> bool:
        """Whether elements that are asked for may be equal where they are not so in a draw."""
        return self.in_forms or self.factor < 0

    @property
    def is_drawn(self) -> bool:
        """Whether inputs and weights are the task's own: a reference may refuse others."""
        return self.factor == 1.0 and not (self.few or self.other_weights or self.in_forms)


def standard_plans(parts: Sequence[Part] = (), *, aligned: bool = False) -> tuple[Plan, ...]:
    """The trials of every verdict, in order: later ones change what the first forward could have cached. `parts`: of
    the weights, one of them changes and the others stay, and then all do. `aligned`: the one with an offset leaves
    inputs where a vector load may begin."""
    exponent = int.from_bytes(os.urandom(1), "little") % 5 + 2
    every = tuple(names for part in parts for names in part)
    return (
        Plan("base"),
        Plan("repeat", same_inputs=True),
        Plan("refill", in_place=True),
        Plan("touched", in_place=True, few=True),
        Plan("outliers", in_place=True, few=True, factor=64.0),
        Plan("weights", other_weights=True),
        *(Plan("touched-weights", other_weights=True, in_place=True, touches=part) for part in parts),
        *[Plan("touched-weights", other_weights=True, in_place=True, touches=every, exchanged=False)] * bool(every),
        Plan("negated", other_weights=True, factor=-1.0),
        Plan("scaled", other_weights=True, factor=2.0**exponent),
        Plan("shrunk", factor=2.0**-exponent),
        Plan("offset", offset=VECTOR_BYTES if aligned else 1),
    )


HISTORY = Plan("history", other_weights=True, in_forms=True)
PRUNED = Plan("pruned", other_weights=True, in_forms=True)
SLIGHT = 1e-3
"""An error in the trial `history` that leaves a class as it is: limits are far away from ordinary inputs."""
UNDRAWN_PLANS = (
    Plan("mixed", in_forms=True),
    Plan("rows", in_forms=True),
    Plan("constants", in_forms=True),
    Plan("choices", in_forms=True),
    Plan("touched-choices", in_place=True, in_forms=True),
    Plan("clusters", in_forms=True),
    Plan("rare", in_forms=True),
    Plan("signs", other_weights=True, in_forms=True),
    PRUNED,
    HISTORY,
)
"""What a draw never shows: inputs of both signs and zeros among them, whole rows of zeros, other values where every
draw has the same, in many places and then in two, large values that lie near one another, integers with a meaning
and probabilities of zero, parameters of both signs and buffers as another checkpoint has them, matrices with zeros and
rows of zeros among them, biases that keep gates open."""

LARGE_WEIGHTS = Plan("large-weights", other_weights=True, in_forms=True)
RELATED = Plan("related", in_forms=True)
CONCENTRATED = Plan("concentrated", in_forms=True)
ISOLATED = Plan("isolated", in_forms=True)
RANGE_PLANS = (
    Plan("near-1e5", factor=1e5),
    Plan("near-1e-6", factor=1e-6),
    LARGE_WEIGHTS,
    RELATED,
    CONCENTRATED,
    ISOLATED,
)
"""Far from ordinary inputs: exponentials overflow, epsilons decide, and fp16, else as good as TF32, has no range.
Behind a normalisation inputs of any size are alike, and only weights make what follows large. Rows that are alike
make attention sharp, experts full and matrices nearly singular, which those of independent draws never do. A mean of
many independent numbers is that of a part of them, as far as half precision tells; not where few of them hold all.
And whoever looks at a sample to see whether inputs are ordinary does not see two that are not."""
OUT_OF_RANGE = ("exact", "relaxed")
"""Classes of candidates to whom these trials are not put."""

FAMILIES = 4
"""Of related rows."""
APART = (1 / 16, 1 / 2)
"""How far related rows lie from that which stands for their family, in parts of what they were, from the first to the
last that the reference stands."""

WEIGHT_FACTORS = ((16.0, 1), (16.0, 2), (4.0, 2))
"""Of parameters with at least so many dimensions, from the first to the last that the reference stands: training makes
some of them several times as large as an initialisation, which keeps scores near zero, where an exponential is a
polynomial and no limit is reached."""

OPEN, HELD = 4.0, 8.0
"""Biases that keep a gate open or shut, and what a tanh needs of its own last value to keep its sign."""

TINY, VISIBLE = 1e-3, 0.1
"""Parameters with a root mean square below the first are brought to the second among other weights."""


MIXTURES = ((-1.0, 0.0), (-1.0,), (0.0,))
"""By which some elements are multiplied in the trial `mixed`, from the first to the last that the reference stands."""
MIXED_SHARE = 8
"""One element of so many for each factor: a sum of them cancels no more than before."""

LEAST_SHARE = 2.0**-7
FEW_VALUES = 16
"""Beside zero, in a tensor that stands for choices and not for numbers."""


def secret_seed() -> int:
    """63 bits of the operating system's randomness."""
    return int.from_bytes(os.urandom(8), "little") >> 1


def draw_inputs(get_inputs: Callable[[], Any], device: str, seed: int | None = None) -> Inputs:
    """The task's own inputs under `seed` (secret by default), made on `device` where its text allows that, detached.

    What is no list or tuple is the only argument. Raises TypeError for None and a dict, which leave the order open.
    """
    own = secret_seed() if seed is None else seed

    def make() -> Any:
        seed_everything(own)
        return get_inputs()

    with torch.no_grad():
        drawn = made_on(device, make)
        if drawn is None or isinstance(drawn, dict):
            raise TypeError(f"a {type(drawn).__name__} is no list of arguments, in the order of `forward`")
        inputs = list(drawn) if isinstance(drawn, list | tuple) else [drawn]
        return [map_leaves(item, lambda t: t.detach().to(device)) for item in inputs]


def may_be_stressed(tensor: torch.Tensor) -> bool:
    """Whether scaling or negating keeps the tensor a plausible input: floating, not a mask, a table or structured."""
    if tensor.is_complex():
        return tensor.numel() > 1 and not _is_constant(tensor)
    if not tensor.is_floating_point() or tensor.numel() < 2 or tensor.dtype.itemsize < 2:
        return False
    flat = _sample(tensor).float()
    if float((flat == 0).float().mean()) > 0.2 and _has_few_values(flat):  # a mask, a one-hot table
        return False
    if bool(torch.isinf(flat).any()) or bool(((flat == 0) | (flat == 1)).all()):
        return False
    return not rows_sum_to_one(tensor)


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    """Elements of a tensor, one after the other, some 65,536 of a large one."""
    flat = tensor.detach().flatten()
    return flat[:: max(1, flat.numel() // 65536)]


def _has_few_values(flat: torch.Tensor) -> bool:
    """Activations behind a ReLU and triangles hold as many values as other numbers do."""
    found = flat[flat != 0][:4096]
    return bool(torch.unique(found).numel() <= FEW_VALUES)


def rows_sum_to_one(tensor: torch.Tensor) -> bool:
    if tensor.dim() < 1 or tensor.shape[-1] < 2:
        return False
    rows = tensor.reshape(-1, tensor.shape[-1])[:64].float()
    return bool((rows >= 0).all()) and bool(((rows.sum(-1) - 1).abs() < 1e-2).all())


def _are_shares(tensor: torch.Tensor) -> bool:
    """Rows of many values that sum to one: what they sum to may be taken for granted, unless they are once smaller."""
    if not tensor.is_floating_point() or tensor.numel() < 2 or tensor.dtype.itemsize < 2:
        return False
    return rows_sum_to_one(tensor) and not _has_few_values(_sample(tensor).float())


def stress(inputs: Inputs, factor: float) -> tuple[Inputs, bool]:
    """The inputs with every stressable tensor multiplied, strides kept, and whether there was one.

    Shares of one are made smaller only, and not by far: larger ones can be refused by functions of probabilities.
    """

    def is_scaled(tensor: torch.Tensor) -> bool:
        return may_be_stressed(tensor) or (LEAST_SHARE <= factor < 1 and _are_shares(tensor))

    found = any(is_scaled(t) for t in leaves(inputs))
    return map_leaves(inputs, lambda t: _scaled(t, factor) if is_scaled(t) else t), found


TOUCHED, SWAPPED = 3, 32
OTHERS = tuple((count, factor) for count in (SWAPPED, TOUCHED, 1) for factor in (-0.5, 0.5))
"""How many elements of a constant are exchanged and by what a single number is multiplied, from the first to the last
that the reference stands."""


def touched(inputs: Inputs, other: Inputs) -> tuple[Inputs, bool]:
    """The inputs with a few elements of every stressable tensor as in `other`, and whether there was one."""
    return _exchanged(inputs, other, 1.0), any(may_be_stressed(t) for t in leaves(inputs))


def with_outliers(inputs: Inputs, other: Inputs, factor: float) -> tuple[Inputs, bool]:
    """The inputs with a few elements of every stressable tensor as in `other`, times `factor`, and a few elements of
    every mask in each other's places; and whether there was such a tensor. What is drawn from a distribution has no
    outliers and a mask is often the same in every draw: what is done to them would never be seen."""
    exchanged = _exchanged(inputs, other, factor)
    found = any(may_be_stressed(t) or is_mask(t) for t in leaves(inputs))
    return map_leaves(exchanged, lambda t: _swapped(t) if is_mask(t) else t), found


def mixed(inputs: Inputs, factors: Sequence[float]) -> tuple[Inputs, bool]:
    """The inputs with one element in eight of every stressable tensor times the first of `factors`, one times the next,
    and whether there was one. Draws of one sign let the magnitude of a sum stand for a sum of magnitudes; draws without
    zeros hide what is done to them."""
    found = any(may_be_stressed(t) for t in leaves(inputs))
    return map_leaves(inputs, lambda t: _blended(t, factors) if may_be_stressed(t) else t), found


ISOLATED_FACTORS = ((-1e3, 1e3), (1e3,), (-8.0, 8.0), (8.0,))
"""What single elements are in the trial `isolated`, in magnitudes of a large one, from the first to the last that the
reference stands."""
SEVERAL = 16
"""A large element is the largest of so many."""


def isolated(inputs: Inputs, factors: Sequence[float]) -> tuple[Inputs, bool]:
    """The inputs with one element of every stressable tensor at each of `factors` times the magnitude of a large one,
    and whether there was such a tensor. One each: whoever looks at a sample of the inputs sees one of six more often
    than one of two."""
    found = any(may_be_stressed(t) for t in leaves(inputs))
    return map_leaves(inputs, lambda t: _with_isolated(t, factors) if may_be_stressed(t) else t), found


def _with_isolated(tensor: torch.Tensor, factors: Sequence[float]) -> torch.Tensor:
    size = (extent(tensor),)
    flat = torch.as_strided(tensor, size, (1,), tensor.storage_offset()).clone()
    large = flat[torch.randint(size[0], (SEVERAL,), device=tensor.device)].abs().amax()
    for factor in factors:
        flat[torch.randint(size[0], (1,), device=tensor.device)] = (large * factor).to(flat.dtype)
    return as_agreed(torch.as_strided(flat, tensor.shape, tensor.stride()), tensor)


def _blended(tensor: torch.Tensor, factors: Sequence[float]) -> torch.Tensor:
    flat = torch.as_strided(tensor, (extent(tensor),), (1,), tensor.storage_offset())
    lot = torch.randint(MIXED_SHARE, flat.shape, device=tensor.device, dtype=torch.uint8)
    for number, factor in enumerate(factors):
        other = flat * factor + 0.0  # no negative zero
        flat = torch.where(lot == number, other * 1j if tensor.is_complex() else other, flat)
    return as_agreed(torch.as_strided(flat, tensor.shape, tensor.stride()), tensor)


def related(inputs: Inputs, apart: float) -> tuple[Inputs, bool]:
    """The inputs with rows, along the last dimension, of a few families: each is one of `FAMILIES` rows plus `apart` of
    what it was, and rows of one length share them from tensor to tensor; and whether there was a tensor of rows that
    could be changed. Zeros stay: a kernel may rely on a triangle of them."""
    heads: dict[tuple[int, torch.dtype], torch.Tensor] = {}

    def of_families(tensor: torch.Tensor) -> torch.Tensor:
        rows = tensor.numel() // max(1, tensor.shape[-1]) if tensor.dim() > 1 else 0
        if rows <= FAMILIES or not may_be_stressed(tensor) or tensor.numel() != extent(tensor) or is_symmetric(tensor):
            return tensor
        key = tensor.shape[-1], tensor.dtype
        if key not in heads:
            heads[key] = tensor.reshape(rows, -1)[torch.randperm(rows, device=tensor.device)[:FAMILIES]]
        family = torch.randint(FAMILIES, tensor.shape[:-1], device=tensor.device)
        made = torch.empty_like(tensor).copy_(tensor * apart + heads[key][family])
        return as_agreed(made.masked_fill_(tensor == 0, 0), tensor)

    made = map_leaves(inputs, of_families)
    return made, bool(heads)


CLUSTER, LEAST_WIDTH = 16, 64
"""Elements or rows that lie near one another, and how many there are at least."""
LARGER = (8.0, 2.0)
"""By which they are multiplied, from the first to the last that the reference stands."""


def clustered(inputs: Inputs, factor: float) -> tuple[Inputs, bool]:
    """The inputs with up to `CLUSTER` elements of every row, along the last dimension, of one sign and times `factor`,
    in order of their size, and twice as many rows, along the one before it, times `factor`; and whether there was such
    a row. Half of them lie beside one another, half a power of two apart, and what ends goes on at its beginning.
    Independent numbers spread their largest ones evenly over any parts of a row, of which each can then be taken to
    hold few."""

    def is_long(tensor: torch.Tensor) -> bool:
        dense = tensor.dim() > 0 and max(tensor.shape[-2:]) >= LEAST_WIDTH and tensor.numel() == extent(tensor)
        return dense and may_be_stressed(tensor) and not tensor.is_complex()

    def of_clusters(tensor: torch.Tensor) -> torch.Tensor:
        made = tensor.clone(memory_format=torch.preserve_format)
        if tensor.shape[-1] >= LEAST_WIDTH:
            places = _near_one_another(tensor.shape[:-1], tensor.shape[-1], tensor.device, beside=0.5)
            signs = torch.ones_like(places[..., :1])
            if bool((tensor < 0).any()):
                signs = torch.where(torch.rand(signs.shape, device=signs.device) < 0.5, -signs, signs)
            sizes = tensor.gather(-1, places).abs().sort(dim=-1).values
            made.scatter_(-1, places, (sizes * signs * factor).to(tensor.dtype))
        if tensor.dim() > 1 and tensor.shape[-2] >= LEAST_WIDTH:
            shape, count = tensor.shape[:-2], tensor.shape[-2]
            runs = [_near_one_another(shape, count, tensor.device, beside=share) for share in (1.0, 0.0)]
            rows = torch.cat(runs, -1).unsqueeze(-1)
            rows = rows.expand(*rows.shape[:-1], tensor.shape[-1])
            made.scatter_(-2, rows, made.gather(-2, rows) * factor)
        return as_agreed(made, tensor)

    found = any(is_long(t) for t in leaves(inputs))
    return map_leaves(inputs, lambda t: of_clusters(t) if is_long(t) else t), found


def _near_one_another(shape: Sequence[int], count: int, device: torch.device, *, beside: float) -> torch.Tensor:
    """`CLUSTER` places of `count` for each of `shape`, beside one another in the share `beside`, see `clustered`."""
    each = (*shape, 1)
    apart = 2 ** torch.randint((count // 4).bit_length(), each, device=device)
    apart = torch.where(torch.rand(each, device=device) < beside, 1, apart)
    return (torch.randint(count, each, device=device) + apart * torch.arange(CLUSTER, device=device)) % count


HOLDERS, LEAST_MANY = 8, 4096
"""Elements that hold almost all of a tensor of at least so many."""
HELD_POWERS = (1.0, 0.5, 0.0)
"""They are multiplied by such a power of how many elements there are for each, from the first to the last that the
reference stands: with the first a mean stays about as large as it was."""


def concentrated(inputs: Inputs, power: float) -> tuple[Inputs, bool]:
    """The inputs with all but `HOLDERS` elements of every large tensor divided by how many there are for each of these,
    which are multiplied by a `power` of that; and whether there was such a tensor."""

    def is_large(tensor: torch.Tensor) -> bool:
        return may_be_stressed(tensor) and extent(tensor) >= LEAST_MANY

    def held_by_few(tensor: torch.Tensor) -> torch.Tensor:
        flat = torch.as_strided(tensor, (extent(tensor),), (1,), tensor.storage_offset())
        each = 2.0 ** (flat.numel() // HOLDERS).bit_length()
        made, places = flat / each, torch.randint(flat.numel(), (HOLDERS,), device=tensor.device)
        made[places] = flat[places] * each**power
        return as_agreed(torch.as_strided(made, tensor.shape, tensor.stride()), tensor)

    found = any(is_large(t) for t in leaves(inputs))
    return map_leaves(inputs, lambda t: held_by_few(t) if is_large(t) else t), found


ROW_PARTS = ((True, True), (True, False), (False, True))
"""Of which rows are emptied: of numbers, of masks."""


def emptied(inputs: Inputs, numbers: bool, masks: bool) -> tuple[Inputs, bool]:
    """The inputs with one row in eight, along the last dimension, of zeros in tensors of numbers and of what shuts
    everything out in masks, and whether there was such a tensor. Rows that pad a batch are like that, and what divides
    by the size of a row, or by how much of it is let through, meets nothing."""

    def is_emptied(tensor: torch.Tensor) -> bool:
        if tensor.dim() < 2 or tensor.numel() != extent(tensor):
            return False
        return masks if is_mask(tensor) else numbers and may_be_stressed(tensor) and not is_positive_definite(tensor)

    found = any(is_emptied(t) for t in leaves(inputs))
    return map_leaves(inputs, lambda t: _without_rows(t) if is_emptied(t) else t), found


def _without_rows(tensor: torch.Tensor) -> torch.Tensor:
    rows = torch.randint(MIXED_SHARE, tensor.shape[:-1], device=tensor.device, dtype=torch.uint8) == 0
    rows.view(-1)[torch.randint(rows.numel(), (1,))] = True
    nothing = tensor.min() if tensor.is_floating_point() and is_mask(tensor) else 0
    shut = rows.unsqueeze(-1)
    if is_symmetric(tensor) and not is_mask(tensor):
        shut = shut | shut.mT
    return tensor.clone(memory_format=torch.preserve_format).masked_fill_(shut, nothing)


def with_other_constants(inputs: Inputs, count: int, factor: float) -> tuple[Inputs, bool]:
    """The inputs with up to `count` elements exchanged (one for zero) in every tensor that holds nothing but ones or
    nothing but zeros, and single floating numbers times `factor`; and whether there was such a tensor. A mask of ones,
    or a first state of zeros, is the same in every draw and may be another one from a caller. Integers of zero stay:
    they may be places, and there may be no other."""
    found = any(_is_constant(t) for t in leaves(inputs))
    return map_leaves(inputs, lambda t: _with_others(t, count, factor) if _is_constant(t) else t), found


def _is_constant(tensor: torch.Tensor) -> bool:
    if tensor.numel() == 0 or (tensor.is_floating_point() and tensor.dtype.itemsize < 2):
        return False
    if tensor.numel() == 1:
        return tensor.is_floating_point() or tensor.is_complex()
    only = bool((tensor == 1).all())
    return only or (not is_integer(tensor) and bool((tensor == 0).all()))


def is_integer(tensor: torch.Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex()) and tensor.dtype is not torch.bool


def _with_others(tensor: torch.Tensor, count: int, factor: float = 0.5) -> torch.Tensor:
    if tensor.numel() == 1:
        return torch.where(tensor == 0, factor, tensor * factor).to(tensor.dtype)
    size = extent(tensor)
    flat = torch.as_strided(tensor, (size,), (1,), tensor.storage_offset()).clone()
    places = torch.randint(size, (count,), device=tensor.device)
    flat[places] = (flat[places] == 0).to(flat.dtype)
    return torch.as_strided(flat, tensor.shape, tensor.stride())


def is_mask(tensor: torch.Tensor) -> bool:
    """Whether it chooses: truth values, or a few floating numbers again and again. Integers may be places, whose order
    matters, and so are one-hot rows."""
    if tensor.numel() < 2 or is_one_hot(tensor):
        return False
    if tensor.dtype is torch.bool:
        return True
    if not tensor.is_floating_point() or tensor.dtype.itemsize < 2:
        return False
    return tensor.numel() > 4 * FEW_VALUES and _has_few_values(_sample(tensor))


def is_one_hot(tensor: torch.Tensor) -> bool:
    return tensor.dim() > 1 and tensor.shape[-1] > 1 and bool(((tensor != 0).sum(dim=-1) == 1).all())


def _swapped(tensor: torch.Tensor) -> torch.Tensor:
    size = extent(tensor)
    flat = torch.as_strided(tensor, (size,), (1,), tensor.storage_offset()).clone()
    places = torch.unique(torch.randint(size, (SWAPPED,), device=tensor.device))
    flat[places] = flat[places[torch.randperm(places.numel(), device=tensor.device)]]
    return torch.as_strided(flat, tensor.shape, tensor.stride())


def _exchanged(inputs: Inputs, other: Inputs, factor: float) -> Inputs:
    others = iter(leaves(other))
    return list(map_leaves(inputs, lambda t: _with_some_of(t, next(others), factor)))


def _with_some_of(tensor: torch.Tensor, other: torch.Tensor, factor: float) -> torch.Tensor:
    if not may_be_stressed(tensor):
        return tensor
    size = (extent(tensor),)
    flat = torch.as_strided(tensor, size, (1,), tensor.storage_offset()).clone()
    places = torch.randint(size[0], (TOUCHED,), device=tensor.device)
    flat[places] = torch.as_strided(other, size, (1,), other.storage_offset())[places] * factor
    return as_agreed(torch.as_strided(flat, tensor.shape, tensor.stride()), tensor)


def _scaled(tensor: torch.Tensor, factor: float) -> torch.Tensor:
    """`tensor * factor` laid out as it was, so that an expanded tensor takes no more room than before."""
    flat = torch.as_strided(tensor, (extent(tensor),), (1,), tensor.storage_offset())
    return as_agreed(torch.as_strided(flat * factor, tensor.shape, tensor.stride()), tensor)


LEAST_SORTED = 8
"""A row of so many numbers is not in order by chance."""


def as_agreed(made: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
    """`made`, in order along its last dimension, symmetric or positive definite where `drawn` is so: boundaries and
    such matrices are what a kernel may rely on. In place; `made` is a tensor of the judge's own."""
    if drawn.dim() < 1 or drawn.is_complex() or drawn.numel() != extent(drawn):
        return made
    if drawn.shape[-1] >= LEAST_SORTED and bool((drawn[..., 1:] >= drawn[..., :-1]).all()):
        if bool((drawn[..., -1] > drawn[..., 0]).all()):
            made.copy_(made.sort(dim=-1).values)
    elif is_symmetric(drawn):
        _made_symmetric(made, drawn)
        if is_positive_definite(drawn):
            _made_definite(made)
    elif is_positive_definite(drawn):  # as a product that its matrix multiplication rounds here so and there so
        _made_definite(_made_symmetric(made, drawn))
    return made


def _made_symmetric(made: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
    either = torch.where(made != drawn, made, made.mT)  # of two that stand for each other one may be changed
    return made.copy_(either.tril() + either.tril(-1).mT)


def _made_definite(made: torch.Tensor) -> None:
    """With a diagonal that outweighs its rows where it is not positive definite."""
    if not is_positive_definite(made):
        others = made.abs().sum(-1) - made.diagonal(dim1=-2, dim2=-1).abs()
        made.diagonal(dim1=-2, dim2=-1).copy_(1.01 * others + others.mean() / made.shape[-1])


def is_symmetric(tensor: torch.Tensor) -> bool:
    return _is_square(tensor) and torch.equal(tensor, tensor.mT)


LARGEST_FACTORED = 2048
"""Rows of the largest matrices of which it is found out whether they are positive definite."""


def is_positive_definite(tensor: torch.Tensor) -> bool:
    """Whether it holds matrices that are all symmetric, up to rounding, and positive definite."""
    if not _is_square(tensor) or not tensor.is_floating_point() or tensor.dtype.itemsize < 2:
        return False
    if tensor.shape[-1] > LARGEST_FACTORED or not bool(torch.isfinite(tensor).all()):
        return False
    diagonal = tensor.diagonal(dim1=-2, dim2=-1).double()
    if not bool((diagonal > 0).all()):
        return False
    sizes = diagonal.sqrt()
    limits = sizes.unsqueeze(-1) * sizes.unsqueeze(-2)
    eps = torch.finfo(tensor.dtype).eps
    if bool((tensor.abs() > (1 + eps) * limits).any()) or bool(((tensor - tensor.mT).abs() > 64 * eps * limits).any()):
        return False
    return bool((torch.linalg.cholesky_ex(tensor.double()).info == 0).all())


def _is_square(tensor: torch.Tensor) -> bool:
    return tensor.dim() > 1 and tensor.shape[-1] == tensor.shape[-2] > 2


def other_state(model: torch.nn.Module) -> state.State:
    """Other weights for the same model: parameters times U(0.5, 1.5) plus noise of 0.1 rms, so that zero and one
    initialisations change too; those that start (almost) as nothing are brought to a size that shows in the answer;
    running statistics kept positive; other buffers and attributes untouched."""
    kinds = state.kinds(model)
    drawn: dict[tuple[int, tuple[int, ...]], torch.Tensor] = {}  # tied tensors stay tied
    values = {}
    for name, tensor in state.collect(model).items():
        key = tensor.data_ptr(), tuple(tensor.shape)
        if tensor.numel() == 0 or key not in drawn:
            drawn[key] = _other(name, kinds[name], tensor)
        values[name] = drawn[key]
    return values


ALONE = 4
"""So many parameters are touched one after the other; more of them in two halves."""
MOVED, MOVED_BY = 4, 4.0
"""Elements of a tensor that is touched, and root mean squares by which they become others."""
TRIES, MOST_TRIES = 16, 256
"""At choosing them so that sum and norm are rounded as they were: a mean that differs in its last digit tells, too."""
LOOKED_AT = 1 << 22
"""Elements that all tries together may look at where they are more than `TRIES`."""


def parts(model: torch.nn.Module, data: Collection[str] = (), changed: Collection[str] = ()) -> list[Part]:
    """The state in parts that are touched one after the other, while the rest is not written to: what is folded may be
    kept under a look at a few tensors. Parameters in random order; statistics and what is named in `data` together;
    what a call changes, in `changed`, is written before each call and in no part."""
    kinds, tied = state.kinds(model), dict[tuple[int, tuple[int, ...]], tuple[str, ...]]()
    for name, tensor in state.collect(model).items():
        told = kinds[name] == "parameter" or _is_statistic(name) or name in data
        if told and name not in changed and _holds_numbers(tensor) and tensor.numel():
            key = tensor.data_ptr(), tuple(tensor.shape)
            tied[key] = (*tied.get(key, ()), name)
    parameters = [names for names in tied.values() if kinds[names[0]] == "parameter"]
    others = tuple(names for names in tied.values() if kinds[names[0]] != "parameter")
    _random.shuffle(parameters)
    if len(parameters) <= ALONE:
        split: list[Part] = [(names,) for names in parameters]
    else:
        split = [tuple(parameters[::2]), tuple(parameters[1::2])]
    return [*split, others] if others else split


def with_touched(
    weights: Mapping[str, torch.Tensor], part: Part, *, any_sign: bool, exchanged: bool = True
) -> state.State:
    """`weights` with a few elements in each other's places in every tensor of `part`; where that changes nothing, or
    not `exchanged`, a few are others, and the mean stays. Not `any_sign`: what is positive remains so."""
    values = dict(weights)
    for names in part:
        touched = _with_exchanged(weights[names[0]]) if exchanged else weights[names[0]]
        if torch.equal(touched, weights[names[0]]):
            touched = _with_moved(touched, any_sign and not _is_statistic(names[0]))
        values.update(dict.fromkeys(names, touched))
    return values


def _with_moved(value: torch.Tensor, any_sign: bool) -> torch.Tensor:
    if value.numel() == 1:
        return _with_others(value, 1, 1.0 + MOVED_BY if any_sign else 1.5)
    step = MOVED_BY * (float(value.abs().float().pow(2).mean().sqrt()) or VISIBLE)
    places_of = range(1, value.numel() - 1) if value.numel() > 2 * MOVED else range(value.numel())  # samples know ends
    for _ in range(max(TRIES, min(MOST_TRIES, LOOKED_AT // value.numel()))):
        places = _random.sample(places_of, min(MOVED, value.numel() // 2 * 2))
        flat, up, down = value.reshape(-1).clone(), places[::2], places[1::2]
        moved = step if any_sign else flat[down] / 2
        flat[up] += moved
        flat[down] -= moved
        if torch.equal(flat.sum(), value.sum()):
            break
    return as_agreed(flat.view(value.shape), value)


LOOKED_OVER = 64
"""Elements of which the largest and the smallest are exchanged."""


def _with_exchanged(value: torch.Tensor) -> torch.Tensor:
    """`value` with some of its larger elements in the places of smaller ones: neither a sum nor a norm nor an extreme
    tells. As it was where they are all equal, or in order."""
    flat = value.reshape(-1)
    inner = range(1, flat.numel() - 1) if flat.numel() > 2 * MOVED else range(flat.numel())
    best, most = flat, -1
    for _ in range(max(TRIES, min(MOST_TRIES, LOOKED_AT // flat.numel()))):
        places = torch.tensor(_random.sample(inner, min(LOOKED_OVER, len(inner))), device=flat.device)
        places, count = places[flat[places].real.argsort()], min(MOVED, len(inner)) // 2
        ends = torch.cat([places[:count], places[-count:]])
        made = flat.clone()
        made[ends] = flat[ends.flip(0)]
        kept = 2 * torch.equal(made.sum(), flat.sum()) + torch.equal(made.norm(), flat.norm())
        if kept > most:
            best, most = made, kept
        if most == 3:
            break
    return as_agreed(best.view(value.shape), value)


SIGNED_SHARE = 0.25
SINGLES = (-8.0, -1.0, 1.0)
"""By which parameters of one element are multiplied, from the first to the last that the reference stands: a slope of
-1/4 does not turn a maximum over."""


def _exchanged_constants(value: torch.Tensor) -> torch.Tensor:
    return _with_others(value, max(1, min(SWAPPED, value.numel() // 4)))


def _noisy_constants(value: torch.Tensor) -> torch.Tensor:
    if value.dtype is torch.bool:
        return value
    return value * 0.5 + (torch.rand_like(value) if bool((value == 1).all()) else 0.1 * torch.randn_like(value))


CONSTANT_BUFFERS: tuple[Callable[[torch.Tensor], torch.Tensor] | None, ...] = (
    _exchanged_constants,
    _noisy_constants,
    None,
)
"""What is made of buffers of nothing but ones or zeros, from the first to the last that the reference stands: the other
of both in some elements, since they may be a mask; other numbers; nothing."""


def of_both_signs(
    model: torch.nn.Module,
    other: Mapping[str, torch.Tensor],
    constants: Callable[[torch.Tensor], torch.Tensor] | None,
    data: Collection[str] = (),
    *,
    single: float = 1.0,
) -> state.State:
    """`other` with a quarter of the elements negated in every parameter that has one sign only, as scales of
    normalisations start; parameters of one element times `single`; with what `constants` makes of buffers of nothing
    but ones or zeros; and, with `constants`, what is named in `data` as another checkpoint may have it. Empty where
    there is nothing of all that."""
    kinds, changed = state.kinds(model), dict[int, torch.Tensor]()
    for name, value in other.items():
        if id(value) in changed:
            continue
        if value.numel() < 2:
            if single != 1.0 and kinds.get(name) == "parameter" and value.numel() and _holds_numbers(value):
                changed[id(value)] = value * single
            continue
        floating = value.is_floating_point() and value.dtype.itemsize >= 2
        if kinds.get(name) == "parameter" and floating:
            if bool((value > 0).all()) or bool((value < 0).all()):
                flat = torch.rand(value.shape, device=value.device) < SIGNED_SHARE
                flat.view(-1)[torch.randint(value.numel(), (1,))] = True
                changed[id(value)] = torch.where(flat, -value, value)
        elif constants and kinds.get(name) == "buffer" and not is_integer(value) and _is_constant(value):
            changed[id(value)] = constants(value)
        elif constants and name in data:
            changed[id(value)] = _other_numbers(value)
    return {name: changed.get(id(value), value) for name, value in other.items()} if changed else {}


def _other_numbers(value: torch.Tensor) -> torch.Tensor:
    """Other numbers of the same signs, and in the same order where they are in one, as edges of intervals are; integers
    in other places, and truth values with the rows that they are in."""
    if is_integer(value):
        return value.roll(1, -1)
    if value.dtype is torch.bool:
        return value.roll(1, 0)
    steps = value.real.diff(dim=-1)
    in_order = bool((steps >= 0).all()) or bool((steps <= 0).all())
    return value * (1.25 if in_order else 1.0 + 0.25 * torch.rand_like(value.real))


def may_be_data(name: str, value: torch.Tensor) -> bool:
    """Whether a buffer is no mask of numbers and no statistic, so that another checkpoint may have other values: a
    codebook, scales, quantised weights, what is pruned."""
    if value.numel() < 2 or _is_statistic(name):
        return False
    if is_integer(value):
        return value.dim() > 1 and not bool((value == value.flatten()[0]).all())
    if value.is_complex():
        return True
    if value.dtype is torch.bool:
        return bool(value.any()) and not bool(value.all())
    return not is_mask(value) and len(torch.unique(_sample(value))) > 2


def is_varied(name: str, value: torch.Tensor) -> bool:
    """Whether trials make another one of a buffer that no checkpoint holds: of statistics, and of nothing but ones or
    zeros, which may be a mask."""
    return _is_statistic(name) or (value.numel() > 1 and not is_integer(value) and _is_constant(value))


def with_large_weights(
    model: torch.nn.Module, other: Mapping[str, torch.Tensor], factor: float, dims: int
) -> state.State:
    """`other` with every parameter of at least `dims` dimensions times `factor`; empty where there is none."""
    kinds, changed = state.kinds(model), dict[int, torch.Tensor]()
    for name, value in other.items():
        if (
            kinds.get(name) == "parameter"
            and _holds_numbers(value)
            and value.dim() >= dims
            and id(value) not in changed
        ):
            changed[id(value)] = value * factor
    return {name: changed.get(id(value), value) for name, value in other.items()} if changed else {}


def pruned(model: torch.nn.Module, other: Mapping[str, torch.Tensor], *, rows: bool) -> state.State:
    """`other` with one element in `MIXED_SHARE` of every matrix among the parameters zero, and with `rows` as many of
    its rows; empty where there is no such matrix. Weights that are drawn hold no zeros: how many there are, and what is
    divided by the size of a row, would never be seen."""
    kinds, made = state.kinds(model), dict[int, torch.Tensor]()
    values = dict(other)
    for name, value in other.items():
        if kinds.get(name) != "parameter" or value.dim() < 2 or not value.is_floating_point() or value.numel() == 0:
            continue
        if id(value) not in made:  # tied tensors stay tied
            gone = torch.rand_like(value, dtype=torch.float32) < 1 / MIXED_SHARE
            if rows:
                lot = torch.rand(len(value), device=value.device) < 1 / MIXED_SHARE
                lot[torch.randint(len(value), (1,), device=value.device)] = True
                gone |= lot.reshape(-1, *[1] * (value.dim() - 1))
            made[id(value)] = value.masked_fill(gone, 0)
        values[name] = made[id(value)]
    return values if made else {}


def with_long_memory(model: torch.nn.Module, other: Mapping[str, torch.Tensor]) -> state.State:
    """`other` with every list of parameters of both signs, as biases are, set to -4, 0 and 4, a third each (more where
    they are large themselves), and what a plain recurrence makes of its own state plus 8; empty where there is neither.
    With a constructor's weights gated recurrences forget within a hundred steps, and what came before is not seen."""
    kinds, changed = state.kinds(model), dict[int, torch.Tensor]()
    for name, value in other.items():
        if kinds.get(name) != "parameter" or not value.is_floating_point() or value.dtype.itemsize < 2:
            continue
        if value.dim() == 1 and bool((value > 0).any()) and bool((value < 0).any()):
            signs = torch.randperm(value.numel(), device=value.device) % 3 - 1
            changed[id(value)] = signs.to(value.dtype) * (OPEN * max(1.0, float(value.float().pow(2).mean().sqrt())))
        elif value.dim() == 2 and value.shape[0] == value.shape[1] and "weight_hh" in name:
            changed[id(value)] = value + HELD * torch.eye(len(value), dtype=value.dtype, device=value.device)
    return {name: changed.get(id(value), value) for name, value in other.items()} if changed else {}


def _other(name: str, kind: str, tensor: torch.Tensor) -> torch.Tensor:
    value = tensor.detach()
    if not _holds_numbers(value):
        return value.clone()
    if name.endswith("running_mean"):
        return value + 0.1 * torch.randn_like(value)
    if _is_statistic(name):
        return value.abs() * (0.5 + torch.rand_like(value)) + 0.1
    if kind != "parameter":
        return value.clone()
    sizes = value.abs()  # complex numbers have one, too
    rms = float(sizes.float().pow(2).mean().sqrt())
    if rms == 0.0:
        return torch.randn_like(value) * VISIBLE
    if rms < TINY:  # LayerScale starts at 1e-6: what it scales would stay below rounding
        value, rms = value * (VISIBLE / rms), VISIBLE
    return value * (0.5 + torch.rand_like(sizes)) + torch.randn_like(value) * (0.1 * rms)


def _holds_numbers(tensor: torch.Tensor) -> bool:
    """Whether it can take other numbers: floating, of two bytes at the least, or complex."""
    return tensor.is_complex() or (tensor.is_floating_point() and tensor.dtype.itemsize >= 2)


def _is_statistic(name: str) -> bool:
    """Whether a normalisation keeps its running mean or variance there."""
    return name.endswith(("running_mean", "running_var"))


def varied(tensor: torch.Tensor) -> torch.Tensor:
    """Its floating numbers times others for each, between 0.8 and 1.25; what is no number of that kind, as it is."""
    if not tensor.is_floating_point() or tensor.dtype.itemsize < 2:
        return tensor
    return tensor * torch.empty_like(tensor).uniform_(0.8, 1.25)


def changed(before: Mapping[str, torch.Tensor], after: Mapping[str, torch.Tensor]) -> list[str]:
    """Names whose values differ between two states."""
    both = [name for name in after if name in before]
    alike = dict(zip(both, state.same_each([(before[name], after[name]) for name in both]), strict=True))
    return [name for name in after if not alike.get(name, False)]
