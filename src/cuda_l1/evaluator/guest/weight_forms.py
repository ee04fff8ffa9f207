"""Weights of the judge's making, out of a model's own: others, touched in a few places, large, pruned, signed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

import torch

from . import state
from .agreed import as_agreed
from .entropy import ENTROPY
from .input_forms import SWAPPED, with_others
from .places import MIXED_SHARE, some_places
from .plans import Part
from .traits import FEW_VALUES, is_constant, is_integer, is_mask, sampled

WEIGHT_FACTORS = ((16.0, 1), (16.0, 2), (4.0, 2))
"""Of parameters with at least so many dimensions, from the first to the last that the reference stands: training makes
some of them several times as large as an initialisation, which keeps scores near zero, where an exponential is a
polynomial and no limit is reached."""

CHANNEL_FACTORS, CHANNELS = (64.0, 8.0), 64
"""Of one channel in so many of each matrix, from the first to the last that the reference stands: trained networks have
some that are so much larger than the others, in heads the same of queries and keys, and a normalisation leaves little
of what is next to them."""
BESIDE, LARGER = 16, 8.0
"""Rows of a matrix of many that are larger still, beside one another, and by how much."""

SMALL = 2.0**-8
"""What all parameters of at least one dimension, and inputs, are multiplied by in the trial `small-weights`: variances
fall below an epsilon of 1e-5, and numbers stay within the range of half precision."""

FAR = 8.0
"""By how much biases are moved to one side, or so many times their size where they are larger than one."""

OPEN, HELD = 4.0, 8.0
"""Biases that keep a gate open or shut, and what a tanh needs of its own last value to keep its sign."""

TINY, VISIBLE = 1e-3, 0.1
"""Parameters with a root mean square below the first are brought to the second among other weights."""


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

NOTHING: Mapping[str, torch.Tensor] = MappingProxyType({})

TRIES, MOST_TRIES = 16, 256
"""How often elements are chosen anew so that sum and norm are rounded as they were: a mean that differs in its last
digit tells, too."""

LOOKED_AT = 1 << 22
"""Elements that all tries together may look at where they are more than `TRIES`."""


def parts(model: torch.nn.Module, data: Collection[str] = (), changed: Collection[str] = ()) -> list[Part]:
    """The state in parts that are touched one after the other, while the rest is not written to: what is folded may be
    kept under a look at a few tensors. Parameters in random order; what is named in `data`, integers and truth values
    too; statistics together; what a call changes, in `changed`, is written before each call and in no part."""
    kinds, tied = state.kinds(model), dict[tuple[int, tuple[int, ...]], tuple[str, ...]]()
    for name, tensor in state.collect(model).items():
        told = kinds[name] == "parameter" or _is_statistic(name) or name in data
        if told and name not in changed and (_holds_numbers(tensor) or name in data) and tensor.numel():
            key = tensor.data_ptr(), tuple(tensor.shape)
            tied[key] = (*tied.get(key, ()), name)
    parameters = [names for names in tied.values() if kinds[names[0]] == "parameter"]
    statistics = tuple(names for names in tied.values() if _is_statistic(names[0]))
    buffers = [names for names in tied.values() if names not in (*parameters, *statistics)]
    return [*_split(parameters), *_split(buffers), *([statistics] if statistics else [])]


def _split(tied: list[tuple[str, ...]]) -> list[Part]:
    """In random order: each alone, or two halves of many."""
    mixed = ENTROPY.sample(tied, len(tied))
    return [(names,) for names in mixed] if len(mixed) <= ALONE else [tuple(mixed[::2]), tuple(mixed[1::2])]


def with_touched(
    weights: Mapping[str, torch.Tensor],
    part: Part,
    *,
    any_sign: bool,
    exchanged: bool = True,
    read: Mapping[str, torch.Tensor] = NOTHING,
) -> state.State:
    """`weights` with a few elements in each other's places in every tensor of `part`; where that changes nothing, or
    not `exchanged` and no mask, a few are others, and the mean stays. Not `any_sign`: what is positive remains so.
    `read`: by name, the flat places from which elements are chosen, of all where none are named."""
    values = dict(weights)
    for names in part:
        value = weights[names[0]]
        places = next((read[name].tolist() for name in names if name in read), range(value.numel()))
        if chooses(value):
            touched = _with_rows_exchanged(value) if _has_equal_rows(value) else _with_exchanged(value, places)
            values.update(dict.fromkeys(names, touched))
            continue
        touched = _with_exchanged(value, places) if exchanged else value
        if torch.equal(touched, value) and _holds_numbers(touched):
            touched = _with_moved(touched, places, any_sign and not _is_statistic(names[0]))
        values.update(dict.fromkeys(names, touched))
    return values


def _with_moved(value: torch.Tensor, places_of: Sequence[int], any_sign: bool) -> torch.Tensor:
    if value.numel() == 1:
        return with_others(value, 1, 1.0 + MOVED_BY if any_sign else 1.5)
    finite = torch.isfinite(value.reshape(-1))
    step = MOVED_BY * (float(value.reshape(-1)[finite].abs().float().pow(2).mean().sqrt()) or VISIBLE)
    places_of = _inner(places_of)
    if not bool(finite.all()):
        places_of = [place for place in places_of if finite[place]]
    for _ in range(max(TRIES, min(MOST_TRIES, LOOKED_AT // value.numel()))):
        places = ENTROPY.sample(places_of, min(MOVED, len(places_of) // 2 * 2))
        flat, up, down = value.reshape(-1).clone(), places[::2], places[1::2]
        moved = step if any_sign else flat[down] / 2
        flat[up] += moved
        flat[down] -= moved
        if torch.equal(flat.sum(), value.sum()):
            break
    return as_agreed(flat.view(value.shape), value)


LOOKED_OVER = 64
"""Elements of which the largest and the smallest are exchanged."""


def _inner(places: Sequence[int]) -> Sequence[int]:
    """Without the ends, which samples know."""
    return places[1:-1] if len(places) > 2 * MOVED else places


def _with_exchanged(value: torch.Tensor, places_of: Sequence[int]) -> torch.Tensor:
    """`value` with some of its larger elements in the places of smaller ones: neither a sum nor a norm nor an extreme
    tells. As it was where they are all equal, or in order."""
    flat = value.reshape(-1)
    inner = _inner(places_of)
    best, most = flat, -1
    for _ in range(max(TRIES, min(MOST_TRIES, LOOKED_AT // flat.numel()))):
        places = torch.tensor(ENTROPY.sample(inner, min(LOOKED_OVER, len(inner))), device=flat.device)
        places, count = places[flat[places].real.double().argsort()], min(MOVED, len(inner)) // 2
        ends = torch.cat([places[:count], places[-count:]])
        made = flat.clone()
        made[ends] = flat[ends.flip(0)]
        kept = 2 * torch.equal(made.sum(), flat.sum()) + torch.equal(_norm(made), _norm(flat))
        if kept > most:
            best, most = made, kept
        if most == 3:
            break
    return as_agreed(best.view(value.shape), value)


def _has_equal_rows(mask: torch.Tensor) -> bool:
    """Whether as many are chosen in each of several rows, as two in four are, on which a kernel may rely."""
    counts = (mask != mask.min()).sum(-1).flatten()
    return len(counts) > 1 and bool((counts == counts[0]).all())


def _with_rows_exchanged(mask: torch.Tensor) -> torch.Tensor:
    """With two different rows in each other's places; as it was where none was found."""
    made = mask.reshape(-1, mask.shape[-1]).clone()
    for _ in range(TRIES):
        pair = ENTROPY.sample(range(len(made)), 2)
        if not torch.equal(made[pair[0]], made[pair[1]]):
            made[pair] = made[pair[::-1]]
            break
    return made.view(mask.shape)


def _norm(flat: torch.Tensor) -> torch.Tensor:
    size: torch.Tensor = (flat if _holds_numbers(flat) else flat.double()).norm()
    return size


SIGNED_SHARE = 0.25
"""The share of elements that is negated in parameters of one sign."""

PASSED = 256
"""The most elements of a parameter that lie beyond each end to which it is clamped."""

SINGLES = (-8.0, -1.0, 1 / 64, 1.0)
"""By which parameters of one element are multiplied, from the first to the last that the reference stands: a slope of
-1/4 does not turn a maximum over, and a rate that stands no other sign may be so low that nothing is forgotten."""


def _exchanged_constants(value: torch.Tensor) -> torch.Tensor:
    return with_others(value, max(1, min(SWAPPED, value.numel() // 4)))


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
    saved = state.saved_buffers(model)
    for name, value in other.items():
        if id(value) in changed:
            continue
        if value.numel() < 2:
            if single != 1.0 and kinds.get(name) == "parameter" and value.numel() and _holds_numbers(value):
                changed[id(value)] = value * single
            elif constants and name in data:
                changed[id(value)] = _other_numbers(value)
            elif constants and name in saved and is_constant(value) and bool((value == 0) | (value == 1)):
                changed[id(value)] = with_others(value, 1)
            continue
        floating = value.is_floating_point() and value.dtype.itemsize >= 2
        if kinds.get(name) == "parameter" and floating:
            if bool((value > 0).all()) or bool((value < 0).all()):
                flat = torch.rand(value.shape, device=value.device) < SIGNED_SHARE
                flat.view(-1)[torch.randint(value.numel(), (1,))] = True
                changed[id(value)] = torch.where(flat, -value, value)
        elif constants and kinds.get(name) == "buffer" and not is_integer(value) and is_constant(value):
            changed[id(value)] = constants(value)
        elif constants and name in data:
            changed[id(value)] = _other_numbers(value)
    return {name: changed.get(id(value), value) for name, value in other.items()} if changed else {}


def with_ends_passed(other: Mapping[str, torch.Tensor], beyond: Mapping[str, Sequence[float]]) -> state.State:
    """`other` with some elements of each parameter that is named in `beyond` one of these numbers: what is clamped to a
    range that training hardly leaves."""
    changed = dict[int, torch.Tensor]()
    for name, numbers in beyond.items():
        made = other[name].clone(memory_format=torch.preserve_format)
        for number in numbers:
            made.masked_fill_(some_places(made.shape, PASSED, made), number)
        changed[id(other[name])] = made
    return {name: changed.get(id(value), value) for name, value in other.items()}


def _other_numbers(value: torch.Tensor) -> torch.Tensor:
    """Other numbers of the same signs, and in the same order where they are in one, as edges of intervals are; integers
    in other places, and truth values, whatever they are written in, with the rows that they are in."""
    if is_integer(value):
        return value.roll(1, -1)
    if chooses(value):
        return value.roll(1, max(range(value.dim()), key=lambda dim: value.shape[dim]))
    steps = value.real.diff(dim=-1)
    in_order = bool((steps >= 0).all()) or bool((steps <= 0).all())
    return value * (1.25 if in_order else 1.0 + 0.25 * torch.rand_like(value.real))


LEAST_MASK = 8
"""Elements of two values that are a mask, and not two numbers, where neither is zero or infinite."""


def chooses(value: torch.Tensor) -> bool:
    """Whether it is a mask: truth values, or a few floating numbers, as what is pruned, signs, what is added to scores
    are."""
    if value.dtype is torch.bool:
        return True
    if value.numel() < 2 or not value.is_floating_point() or value.dtype.itemsize < 2:
        return False
    if len(torch.unique(sampled(value)[: 4 * FEW_VALUES])) > FEW_VALUES + 1:
        return False
    values = torch.unique(sampled(value))
    if len(values) != 2:
        return len(values) > 1 and is_mask(value)
    return value.numel() >= LEAST_MASK or bool(((values == 0) | torch.isinf(values)).any())


def may_be_data(name: str, value: torch.Tensor) -> bool:
    """Whether a buffer is no statistic, not one number throughout, no row of integers in order (positions, offsets) and
    no counter, so that another checkpoint may have other values: a codebook, scales, a step, quantised weights, an
    order of channels, what is pruned."""
    if value.numel() == 0 or _is_statistic(name):
        return False
    if is_integer(value):
        in_order = value.dim() == 1 and bool((value.diff() >= 0).all())
        return not in_order and not bool((value == value.flatten()[0]).all())
    if value.is_complex():
        return True
    if value.dtype is torch.bool:
        return bool(value.any()) and not bool(value.all())
    return value.numel() == 1 or len(torch.unique(sampled(value))) > 1


def is_varied(name: str, value: torch.Tensor) -> bool:
    """Whether trials make another one of a buffer that no checkpoint holds: of statistics, and of nothing but ones or
    zeros, which may be a mask."""
    return _is_statistic(name) or (value.numel() > 1 and not is_integer(value) and is_constant(value))


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


def with_large_channels(model: torch.nn.Module, other: Mapping[str, torch.Tensor], factor: float) -> state.State:
    """`other` with one row in `CHANNELS`, of the first dimension, of every matrix among the parameters times `factor`,
    the same in all, and in those with many rows `BESIDE` rows beside one another larger still; empty where there is no
    matrix of several rows."""
    kinds, changed, first = state.kinds(model), dict[int, torch.Tensor](), ENTROPY.randrange(CHANNELS)
    for name, value in other.items():
        is_matrix = kinds.get(name) == "parameter" and _holds_numbers(value) and value.dim() > 1
        if is_matrix and value.numel() > len(value) > 1 and id(value) not in changed:
            made = value.clone(memory_format=torch.preserve_format)
            made[first % min(CHANNELS, len(made)) :: CHANNELS] *= factor
            if len(made) >= BESIDE * CHANNELS:  # as embeddings of like tokens: none of many parts holds few of the best
                run = slice(begin := first * len(made) // CHANNELS, begin + BESIDE)
                made[run] = value[run] * (LARGER * factor)
            changed[id(value)] = made
    return {name: changed.get(id(value), value) for name, value in other.items()} if changed else {}


def with_biases_moved(model: torch.nn.Module, other: Mapping[str, torch.Tensor], towards: float) -> state.State:
    """`other` with every list of parameters of both signs, as biases are, far below (-1) or above (1) zero; empty where
    there is none. The largest of many channels, or the logarithm of a sum of exponentials, is hardly ever negative
    where their biases are of both signs, so that what is done to negative ones could be left out."""
    kinds, changed = state.kinds(model), dict[int, torch.Tensor]()
    for name, value in other.items():
        if kinds.get(name) != "parameter" or not value.is_floating_point() or value.dtype.itemsize < 2:
            continue
        is_list = max(value.shape, default=1) == value.numel() > 1
        if is_list and bool((value > 0).any()) and bool((value < 0).any()):
            size = float(value.float().pow(2).mean().sqrt())
            changed[id(value)] = value + towards * FAR * max(1.0, size)
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


def is_tracked(name: str, changed: Collection[str]) -> bool:
    """Whether it is a statistic of a normalisation that counts its batches among what a call has `changed`: where all
    of a batch are zero, the mean is what it was."""
    module, _, statistic = name.rpartition(".")
    return _is_statistic(statistic) and ".".join(filter(None, (module, "num_batches_tracked"))) in changed


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
