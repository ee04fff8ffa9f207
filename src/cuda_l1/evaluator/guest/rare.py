"""What inputs may mean and hardly ever do in a draw: numbers that the reference's text asks for, padding and what is to
be ignored among them, integers of another size, categories that no row has, probabilities of exactly zero and one.

Who leaves them out is right for nearly all that a task draws. Each is put into inputs only where the reference, asked
for it alone, gives a finite answer; negative integers not where it takes them for indices that count from an end, which
is nothing that a caller means who never gives any.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch

from . import kinds, oracle
from .agreed import without_gaps
from .asked import asked_of
from .dispatch import DispatchMode
from .drawing import Inputs, secret_seed
from .places import some_places
from .reference import BadTask, Reference
from .tensors import extent, leaves, map_leaves, with_leaves
from .traits import LEAST_SORTED, is_integer, is_one_hot, is_symmetric

MOST_VALUES = 8
"""Integers of the reference's text, at the most, that are tried in each tensor: those with the most telling names."""
ASK_S, ASK_AT_LEAST = 2.0, 4
"""Seconds for which the reference is asked what it stands, not counting those in which it was watched before, and
questions that are asked however long they take."""
LEAST_BEYOND = 128
"""How far beyond the integers of a tensor another one may lie, or as far as the largest of them where that is more: a
reference may make room for as many things as the largest integer says, which should not fill the memory."""
SPREAD = 0.375
"""The share of all bytes between the least and the largest from which on they may be any."""
ELEMENTS, ROWS, NEGATED = 256, 64, 2
"""The most elements of a tensor, and the most rows, that become others, and the most integers that become negative:
what is added up is to stay as large as it was."""
FLAT = 1 / 64
"""The power of shares that are nearly alike: of two, one of which was a million times the other, it is 1.24 times."""
_KEYWORDS = {"ignore_index", "padding_idx"}
"""Not `blank`: what a CTC loss is to find may hold none."""
_TELLING = re.compile(r"blank|bos|eos|ignore|pad(?!ding$)|mask_(id|idx|token)|missing|sentinel|sep_|cls_|special|unk")
_COUNTS = re.compile(r"num_(categories|classes|embeddings|experts|labels|segments|tokens)$|vocab(_size)?$|^classes$")
_OF_FORM = re.compile(r"axis|device|dim|len\(|mode|shape|size|training")
"""What is compared there is no content of a tensor's."""
_ASKING = {"eq", "ne", "lt", "le", "gt", "ge", "greater", "less", "isin", "tensor"}
_BESIDE = {ast.Gt: (1, -1), ast.LtE: (1, -1), ast.Lt: (-1, 1), ast.GtE: (-1, 1)}
"""By the order that an integer is compared in, where it stands on the right and on the left: of those beside it the one
for which the answer is another. What `t > 0` says of -1 it says of 0."""
_OF_PROBABILITIES = re.compile(r"log|entr|kl_?div|BCE|NLL", re.IGNORECASE)
"""In the text of what computes with probabilities."""

FEW = 4096
"""Elements among which what is put later might take all places of what was put before."""

Kind = Literal["places", "row", "larger", "negated", "column", "shares", "ends", "dealt", "once", "twice"]
LARGER = 3
"""Integers are made at least so many times as large where they stand for numbers."""
BEYOND_FLOATS = 1 << 28
"""Integers of this size int32 holds exactly and float32 does not: sums and products of integers are brought near it."""
BEYOND_INT32 = 1 << 33
"""And where answers are of int64 near this."""
LEAST_SUM = 16
"""An answer of integers is such a sum or product where it is so many times as large as what it is made of."""


@dataclass(frozen=True)
class Rare:
    """One thing that a tensor among the inputs may hold."""

    index: int
    """Of the tensor, in the order of `leaves`."""
    kind: Kind
    """`places`, `row`: the value in some places, or all along one row; `larger`: integers up to `value` times as large;
    `negated`: some integers with the other sign; `column`: rows of a one-hot tensor that are of a category that none is
    of; `shares`: some that sum to one are zero, or one; `ends`: some numbers are zero, or one."""
    value: float = 0
    """What is put there; of `shares` the dimension along which they sum to one."""
    imaginary: float = 0
    """Of what is put among complex numbers."""


def learn(reference: Reference) -> tuple[Rare, ...]:
    """What the reference stands, each asked alone."""
    inputs, found = map_leaves(reference.draw(), without_gaps), list[Rare]()
    asked, by_chance = asked_of(reference, inputs), kinds.distinct_by_chance(reference, inputs)
    begin = time.monotonic() - reference.rested_s
    for number, rare in enumerate(_possible(inputs, reference, asked, by_chance)):
        if number >= ASK_AT_LEAST and time.monotonic() - reference.rested_s - begin > ASK_S:
            break
        made, is_other = with_rare(inputs, (rare,))
        if not is_other:
            continue
        if rare.kind == "larger":
            if times := _times_larger(reference, inputs, rare.index):
                found.append(replace(rare, value=times))
                found.extend(_negated(reference, inputs, rare.index))
        elif _stands(reference, made) and not _counts_from_an_end(reference, inputs, made, rare):
            found.append(rare)
    return tuple(found)


def with_rare(inputs: Inputs, rares: Collection[Rare]) -> tuple[Inputs, bool]:
    """The inputs with all of these, and whether any tensor is another by it."""
    drawn, made = leaves(inputs), leaves(inputs)
    for rare in rares:
        other = made[int(rare.value)] if rare.kind == "twice" and rare.value != rare.index else None
        made[rare.index] = _changed(made[rare.index], rare, drawn[rare.index], other)
    found = any(now is not was for now, was in zip(made, drawn, strict=True))
    return with_leaves(inputs, made), found


def named_numbers(text: str) -> list[complex]:
    """Floating and complex numbers, zero left out, that a text asks equality with."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    asked: list[ast.expr] = []
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=others):
                asked.extend([left, *others] if not _OF_FORM.search(ast.unparse(node)) else [])
            case ast.Call(func=ast.Attribute(attr="eq" | "ne"), args=args):
                asked.extend(args)
    return list(dict.fromkeys(value for node in asked for value in _floats(node) if value))


def _floats(node: ast.expr) -> Iterator[complex]:
    match node:
        case ast.Constant(value=value) if isinstance(value, float | complex):
            yield value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield from (-value for value in _floats(operand))


def named_integers(text: str, model: torch.nn.Module | None = None) -> list[int]:
    """Integers that a text compares something with, or names as padding or as what is to be ignored, and the last of so
    many categories; names are looked up among what the text assigns and among the attributes of `model`'s modules. The
    most telling ones first."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    known = _known(tree, model)
    told = [v for name, values in known.items() if _TELLING.search(name.lower()) for v in sorted(values)]
    compared: list[int] = []
    for node in ast.walk(tree):
        match node:
            case ast.keyword(arg=str(name), value=value) if name in _KEYWORDS:
                told.extend(_integers(value, known))
            case ast.Compare(left=left, ops=ops, comparators=others) if not _OF_FORM.search(ast.unparse(node)):
                for one, op, other in zip((left, *others), ops, others, strict=False):
                    beside = _BESIDE.get(type(op), (0, 0))
                    compared.extend(v + step for v in _integers(other, known) for step in {0, beside[0]})
                    compared.extend(v + step for v in _integers(one, known) for step in {0, beside[1]})
            case ast.Call(func=ast.Attribute(attr=name), args=args) if name in _ASKING:
                compared.extend(v for arg in args for v in _integers(arg, known))
    last = [v - 1 for name, values in known.items() if _COUNTS.search(name) for v in sorted(values)]
    return list(dict.fromkeys([*told, *compared, *last]))


def _known(tree: ast.AST, model: torch.nn.Module | None) -> dict[str, set[int]]:
    """Names, and attributes by their last name -> integers that they stand for."""
    known: dict[str, set[int]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                name = getattr(target, "id", getattr(target, "attr", ""))
                known.setdefault(name, set()).update(_integers(node.value, {}))
    for module in model.modules() if model is not None else ():
        for name, value in vars(module).items():
            if type(value) is int:
                known.setdefault(name, set()).add(value)
    return known


def _integers(node: ast.expr, known: dict[str, set[int]]) -> Iterator[int]:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            yield value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            yield -value
        case ast.Name(id=name) | ast.Attribute(attr=name):
            yield from sorted(known.get(name, ()))
        case ast.List(elts=items) | ast.Tuple(elts=items):
            for item in items:
                yield from _integers(item, known)


# ── what may be there ─────────────────────────────────────────────────────────────────────────────


def _possible(
    inputs: Inputs, reference: Reference, asked: Mapping[int, Sequence[float]], by_chance: Collection[int]
) -> Iterator[Rare]:
    """`asked`: numbers that were asked of each tensor, in the order of `leaves`; `by_chance`: those that hold nothing
    twice by chance."""
    text = Path(reference.path).read_text(encoding="utf-8")
    values = named_integers(text, reference.model)[:MOST_VALUES]
    probable, named = bool(_OF_PROBABILITIES.search(text)), named_numbers(text)[:MOST_VALUES]
    sizes = {size for tensor in leaves(inputs) for size in tensor.shape}
    parts = _of_parts(inputs, sizes)
    for index, tensor in enumerate(leaves(inputs)):
        if tensor.numel() < 2 or tensor.numel() != extent(tensor):
            continue
        if is_one_hot(tensor):
            yield Rare(index, "column")
        elif is_integer(tensor):
            if _may_be_larger(tensor):
                yield Rare(index, "larger", LARGER)
            yield from (Rare(index, "places", end) for end in _ends_of_bytes(tensor))
            fitting = _fitting(tensor, list(dict.fromkeys([*values, *_unheld(tensor, asked.get(index, []))])))
            if tensor.dim() > 1 and len(tensor) > 1:
                yield from (Rare(index, "row", value) for value in fitting[:1])  # before single places: it covers them
            yield from (Rare(index, "places", value) for value in fitting)
            if index in by_chance:
                yield Rare(index, "twice", max((other for other in by_chance if other < index), default=index))
            elif index not in parts or len(parts) == 1:
                most = torch.iinfo(tensor.dtype).max if tensor.device.type == "cpu" else int(tensor.max())
                yield Rare(index, "dealt", most) if kinds.add_up(tensor, sizes) else Rare(index, "once")
        elif tensor.is_complex():
            yield from (Rare(index, "places", value.real, value.imag) for value in named if _holds(tensor, value))
        elif tensor.is_floating_point() and tensor.dtype.itemsize >= 2 and not is_symmetric(tensor):
            may_be_shares = not bool((tensor < 0).any())
            dims = [dim for dim in reversed(range(tensor.dim())) if may_be_shares and _sums_to_one(tensor, dim)]
            if dims:
                yield Rare(index, "shares", dims[0])
            elif probable and _between_ends(tensor):
                yield Rare(index, "ends")
            numbers = [*(value.real for value in named if not value.imag), *(n for n in asked.get(index, []) if n)]
            fitting_numbers = [number for number in dict.fromkeys(numbers) if _holds(tensor, number)]
            yield from (Rare(index, "places", number) for number in fitting_numbers if not dims)


def _of_parts(inputs: Inputs, sizes: Collection[int]) -> list[int]:
    """Which tensors, in the order of `leaves`, say where parts of something lie: several may have to agree."""
    lists = [
        (index, tensor) for index, tensor in enumerate(leaves(inputs)) if is_integer(tensor) and tensor.numel() > 1
    ]
    return [index for index, tensor in lists if kinds.is_of_parts(tensor, sizes)]


def _ends_of_bytes(tensor: torch.Tensor) -> list[int]:
    """Those that the tensor does not hold, on a CPU: where bytes are numbers of this dtype, and not smaller ones in a
    byte each, as those of four bits are, or kinds of things."""
    info, (least, most) = torch.iinfo(tensor.dtype), (int(tensor.min()), int(tensor.max()))
    if tensor.dtype.itemsize > 1 or tensor.device.type != "cpu" or most - least < (info.max - info.min) * SPREAD:
        return []
    return [end for end in (info.min, info.max) if not least <= end <= most]


def _holds(tensor: torch.Tensor, number: complex) -> bool:
    """Whether a number is none that its dtype has to overflow for."""
    return max(abs(number.real), abs(number.imag)) <= torch.finfo(tensor.dtype).max


def _unheld(tensor: torch.Tensor, asked: Sequence[float]) -> list[int]:
    """Integers that were asked of a tensor, none of which it holds, and none below zero where it has none of these."""
    least, most = int(tensor.min()), torch.iinfo(tensor.dtype).max
    whole = [
        int(number) for number in asked if number == int(number) and (0 if least >= 0 else -most) <= number <= most
    ]
    return [number for number in whole if not bool((tensor == number).any())][:MOST_VALUES]


def _fitting(tensor: torch.Tensor, values: Sequence[int]) -> list[int]:
    """Values that the tensor may hold, 1 among them where rows are all zeros, as kinds of tokens are where there is one
    kind: none where it is in order, and on a GPU none beyond those that it holds, since an index out of range leaves
    the context there broken."""
    flat = tensor.flatten(0, -2) if tensor.dim() > 1 else tensor.unsqueeze(0)
    if tensor.dim() > 1 and not bool(tensor.any()):
        values = list(dict.fromkeys([1, *values]))
    elif flat.shape[-1] >= LEAST_SORTED and bool((flat.diff(dim=-1) >= 0).all()):
        return []
    least, most = min(0, int(tensor.min())), int(tensor.max())
    if tensor.device.type == "cpu":
        info, beyond = torch.iinfo(tensor.dtype), max(LEAST_BEYOND, most)
        least, most = max(info.min, least - beyond), min(info.max, most + beyond)
    return [value for value in values if least <= value <= most]


def _may_be_larger(tensor: torch.Tensor) -> bool:
    """Whether integers may be numbers of another size, which only an answer tells: not on a GPU, where an index out of
    range leaves the context broken, not where they are all the same or a mask, and not beyond their dtype."""
    least, most = int(tensor.min()), int(tensor.max())
    fits = LARGER * max(-least, most) <= torch.iinfo(tensor.dtype).max
    return tensor.device.type == "cpu" and most > max(least, 1) and fits


def _times_larger(reference: Reference, inputs: Inputs, index: int) -> int:
    """How many times as large the integers of a tensor may be; 0 where they do not stand for numbers. Those that are
    added up or multiplied, so that an answer is far larger than they are, may be so large that it comes near
    `BEYOND_FLOATS`, all such tensors together; of others, whose range may be counted, there are few."""
    tensors = leaves(inputs)
    multiplied = _multiplied(reference, inputs, index, LARGER)
    if not multiplied:
        return 0
    own, largest = (float(max(t.abs().max() for t in each)) for each in ([tensors[index]], multiplied))
    if any(t.is_floating_point() or t.is_complex() for t in multiplied) or largest < LEAST_SUM * own:
        return LARGER
    together = sum(is_integer(t) and t.numel() > 1 and _may_be_larger(t) for t in tensors)
    most = min(BEYOND_INT32 if t.dtype is torch.int64 else BEYOND_FLOATS for t in multiplied)
    most = min(most, *(torch.iinfo(t.dtype).max // 2 for t in multiplied))
    times = int(min((most / largest) ** (1 / together), torch.iinfo(tensors[index].dtype).max / own))
    exact = times > LARGER and _multiplied(reference, inputs, index, times, rtol=0)
    return times if exact else LARGER  # a reference may compute in floats itself


def _negated(reference: Reference, inputs: Inputs, index: int) -> list[Rare]:
    """Of integers that stand for numbers, and none of which is negative in a draw."""
    rare, tensor = Rare(index, "negated"), leaves(inputs)[index]
    if bool((tensor < 0).any()) or not torch.iinfo(tensor.dtype).min:
        return []
    return [rare] if _stands(reference, with_rare(inputs, (rare,))[0]) else []


def _multiplied(
    reference: Reference, inputs: Inputs, index: int, times: int, *, rtol: float = 1e-4
) -> list[torch.Tensor]:
    """Answers that are so many times as large when the integers of a tensor are: these stand for numbers, not for
    places or kinds, of which there may be no more. `rtol` is of an answer's largest element too: sums may cancel."""
    made = leaves(inputs)
    made[index] = made[index] * times
    try:
        before = reference.call(inputs, reference.public)
        after = reference.call(with_leaves(inputs, made), reference.public)
    except BadTask:
        return []
    pairs = zip(before.tensors, after.tensors, strict=True)
    numbers = [(a, b) for a, b in pairs if a.dtype == b.dtype is not torch.bool and bool(a.any())]
    numbers = [(a, b) for a, b in numbers if oracle.all_finite(b)]
    return [a for a, b in numbers if torch.allclose(a * times, b, rtol=rtol, atol=rtol * float(b.abs().max()))]


def _sums_to_one(tensor: torch.Tensor, dim: int) -> bool:
    """Whether it holds probabilities along a dimension, where nothing in it is negative."""
    return tensor.shape[dim] > 1 and bool(((tensor.float().sum(dim) - 1).abs() < 1e-2).all())


def _between_ends(tensor: torch.Tensor) -> bool:
    """Whether it may hold probabilities of its own each: numbers from zero to one, and not these alone."""
    inside = (tensor > 0) & (tensor < 1)
    return bool(((tensor >= 0) & (tensor <= 1)).all()) and bool(inside.any())


def _stands(reference: Reference, inputs: Inputs) -> bool:
    try:
        answer = reference.call(inputs, reference.public)
    except BadTask:
        return False
    return all(oracle.all_finite(t) for t in answer.tensors if t.is_floating_point() or t.is_complex())


class _FromTheEnd(DispatchMode):
    """`with _FromTheEnd() as seen: ...`; `seen.sizes` are those of dimensions that a negative index was asked of."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes = set[int]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__.strip("_") in ("index", "index_put", "unsafe_index", "unsafe_index_put"):
            dim = 0
            for index in args[1]:
                if index is not None and is_integer(index) and bool((index < 0).any()):
                    self.sizes.add(args[0].shape[dim])
                dim += index.dim() if index is not None and index.dtype is torch.bool else 1
        return func(*args, **(kwargs or {}))


def _counts_from_an_end(reference: Reference, drawn: Inputs, made: Inputs, rare: Rare) -> bool:
    """Whether a negative integer in a tensor of which no draw holds any is answered as the place is that it names from
    the end of a dimension."""
    value, tensor = int(rare.value), leaves(made)[rare.index]
    if value >= 0 or not is_integer(tensor) or bool((leaves(drawn)[rare.index] < 0).any()):
        return False
    seed = secret_seed()
    with _FromTheEnd() as seen:
        answer = reference.call(made, reference.public, seed=seed)
    for size in seen.sizes:
        if not 0 <= value + size <= torch.iinfo(tensor.dtype).max:
            continue
        others = leaves(made)
        others[rare.index] = torch.where(tensor == value, value + size, tensor)
        try:
            other = reference.call(with_leaves(made, others), reference.public, seed=seed)
        except BadTask:
            continue
        if all(map(torch.equal, answer.tensors, other.tensors)):
            return True
    return False


# ── changes ───────────────────────────────────────────────────────────────────────────────────────


def _changed(tensor: torch.Tensor, rare: Rare, drawn: torch.Tensor, other: torch.Tensor | None) -> torch.Tensor:
    """`tensor` with that in it, laid out as it was; itself where there is nothing to change. `drawn`: what it was
    before all changes; of few elements those that are others already stay so. `other`: of which it may hold some."""
    made = tensor.clone(memory_format=torch.preserve_format)
    free = made == drawn if made.numel() <= FEW else None
    match rare.kind:
        case "places":
            value = complex(rare.value, rare.imaginary) if made.is_complex() else rare.value
            made.masked_fill_(some_places(made.shape, ELEMENTS, made, free), value)
        case "row":
            made[int(torch.randint(len(made), (1,)))].fill_(rare.value)
        case "larger":
            times = int(rare.value)
            made.mul_(times).sub_(torch.randint_like(made, times) * made.sign())
        case "negated":
            made.masked_fill_(chosen := some_places(made.shape, NEGATED, made), 0).sub_(tensor * chosen)
        case "column":
            _fill_columns(made)
        case "shares":
            _fill_shares(made.movedim(int(rare.value), -1))
        case "dealt":
            kinds.deal(made, int(rare.value))
        case "once":
            kinds.put_once(made)
        case "twice":
            kinds.put_twice(made, other)
            if free is not None and bool(free.any()):
                made.copy_(torch.where(free, made, tensor))
        case "ends":
            made.masked_fill_(some_places(made.shape, ELEMENTS, made), 0).masked_fill_(
                some_places(made.shape, ELEMENTS, made), 1
            )
    return tensor if torch.equal(made, tensor) else made


def _fill_columns(tensor: torch.Tensor) -> None:
    """Some rows of a one-hot tensor are of categories that no row is of, in place; none where each has its row."""
    unseen = (tensor != 0).flatten(0, -2).any(0).logical_not().nonzero().flatten()
    if not len(unseen):
        return
    chosen = some_places(tensor.shape[:-1], ROWS, tensor)
    rows = tensor[chosen]
    hot = rows.gather(-1, (rows != 0).to(torch.uint8).argmax(-1, keepdim=True))
    to = unseen[torch.randint(len(unseen), (len(rows), 1), device=tensor.device)]
    tensor[chosen] = torch.zeros_like(rows).scatter_(-1, to, hot)


def _fill_shares(shares: torch.Tensor) -> None:
    """In some rows half of the shares are zero, in place, in one of them all but one, and in others they are nearly
    alike, in the order that they had; all keep their sum."""
    chosen = some_places(shares.shape[:-1], ROWS, shares)
    rows = shares[chosen].double()
    largest = rows.argmax(-1, keepdim=True)
    kept = (torch.rand(rows.shape, device=rows.device) < 0.5).scatter_(-1, largest, True)
    kept[0] = False
    kept[0].scatter_(-1, largest[0], True)
    is_flat = torch.rand(len(rows), 1, device=rows.device) < 1 / 3
    is_flat[0], is_flat[1:2] = False, True
    made = torch.where(is_flat, rows**FLAT, rows * kept)
    made = made * (rows.sum(-1, keepdim=True) / made.sum(-1, keepdim=True))
    shares[chosen] = made.to(shares.dtype)
