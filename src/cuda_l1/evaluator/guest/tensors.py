"""Nested Python values with tensors, as JSON beside a shared buffer. Never pickle: the other end may be hostile.

A tensor is described by dtype, shape, stride, and where its bytes lie; everything else is tagged JSON.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from .buffers import ALIGNMENT, Buffer
from .entropy import ENTROPY

# Taken before any candidate is loaded: a patched `torch.Tensor.copy_` must not reach the harness.
_copy = torch.Tensor.copy_
_tensor = torch.tensor
_as_strided = torch.as_strided
_is_lazy_copy = torch._C._is_cow_tensor  # type: ignore[attr-defined]  # the only way to ask; torch's stubs lack it
_is_queued = torch._is_functional_tensor
_DTYPES = {
    str(d).removeprefix("torch."): d
    for d in vars(torch).values()
    if isinstance(d, torch.dtype) and not str(d).startswith("torch.q")
}
MAX_DEPTH = 16
VECTOR_BYTES = 16
"""The widest load of a GPU's thread, which has to be aligned to its own size."""
_ROW = 1024


class Unsupported(ValueError):
    """A value that cannot cross the wall; the text names its type."""


def extent(tensor: torch.Tensor) -> int:
    """Elements from the first to the last that the tensor touches, gaps included."""
    if tensor.numel() == 0:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def plain_tensor_problem(value: Any) -> str | None:
    """Why `value` is not a plain materialised tensor, or None when it is one."""
    # By identity: a metaclass can make its class equal any other.
    if type(value) is not torch.Tensor and type(value) is not torch.nn.Parameter:
        return f"{type(value).__module__}.{type(value).__qualname__} is not a plain tensor"
    if value.layout is not torch.strided:
        return f"layout {value.layout} is not strided"
    if value.is_quantized or value.is_meta or value.is_nested:
        return "a quantised, nested or meta tensor is not materialised"
    if value.is_conj() or value.is_neg():
        return "a lazily conjugated or negated tensor is not materialised"
    if _is_queued(value) or value._is_zerotensor():
        return "a tensor whose elements are made when they are read is not materialised"
    if _is_lazy_copy(value):
        return "a copy that is made when it is first written to is not materialised"
    return None


def overlaps(tensor: torch.Tensor) -> bool:
    """Whether two elements share memory, as in an expanded tensor, which costs nothing to make."""
    if tensor.numel() == 0:
        return False
    reach = 0
    for stride, size in sorted((st, sz) for st, sz in zip(tensor.stride(), tensor.shape, strict=True) if sz > 1):
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def touch(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors lie in one stretch of memory, whatever storages they say they have."""
    if not one.numel() or not other.numel():
        return False
    begin, other_begin = one.data_ptr(), other.data_ptr()
    end, other_end = (t.data_ptr() + extent(t) * t.element_size() for t in (one, other))
    return begin < other_end and other_begin < end


def begin_as_earlier(places: Iterable[tuple[int, torch.Tensor]]) -> list[int]:
    """Places of the tensors that begin at the address of an earlier one. Views that share a block side by side do
    not."""
    begins: set[int] = set()
    found = []
    for place, tensor in places:
        if tensor.numel() and tensor.data_ptr() in begins:
            found.append(place)
        begins.add(tensor.data_ptr())
    return found


def share_with_earlier(tensors: Sequence[torch.Tensor]) -> list[int]:
    """Places of the tensors that have an element in common with an earlier one."""
    stretches: list[list[int]] = []
    end = 0
    for place in sorted((n for n, t in enumerate(tensors) if t.numel()), key=lambda n: tensors[n].data_ptr()):
        tensor = tensors[place]
        if tensor.data_ptr() >= end:
            stretches.append([])
        stretches[-1].append(place)
        end = max(end, tensor.data_ptr() + extent(tensor) * tensor.element_size())
    found = []
    for places in map(sorted, stretches):
        begin = min(tensors[n].data_ptr() for n in places)
        forms = ((t.data_ptr() - begin, t.element_size(), t.shape, t.stride()) for t in (tensors[n] for n in places))
        found += [places[number] for number in _meet_earlier(*forms)]
    return sorted(found)


@functools.lru_cache(maxsize=64)
def _meet_earlier(*tensors: tuple[int, int, tuple[int, ...], tuple[int, ...]]) -> list[int]:
    """Which of these (first byte, bytes of an element, shape, stride) hold a byte of an earlier one's."""
    if len(tensors) == 1:
        return []
    unit = math.gcd(*(number for start, size, _, _ in tensors for number in (start, size)))
    ends = [start + size * (1 + sum((n - 1) * s for n, s in zip(*form, strict=True))) for start, size, *form in tensors]
    marks, found = torch.zeros(max(ends) // unit, dtype=torch.bool), []
    for number, (start, size, shape, stride) in enumerate(tensors):
        own = marks.as_strided((*shape, size // unit), (*(s * size // unit for s in stride), 1), start // unit)
        if bool(own.any()):
            found.append(number)
        own.fill_(True)
    return found


def _reserve(cursor: int, nbytes: int, lead: int = 0) -> tuple[int, int]:
    start = -(-cursor // ALIGNMENT) * ALIGNMENT + lead
    return start, start + nbytes


def require_supported(value: Any) -> None:
    """Raise Unsupported, naming the type, when `value` holds something that cannot cross the wall."""

    def tensor(item: torch.Tensor) -> None:
        if problem := plain_tensor_problem(item):
            raise Unsupported(problem)

    _encode(value, tensor, 0)


def layout(value: Any) -> Any:
    """What a value is without the contents of its tensors: equal layouts take the same places in a buffer."""
    return _encode(value, lambda t: [str(t.dtype), list(t.shape), list(t.stride())], 0)


def arrangement(value: Any) -> Any:
    """What a caller sees of tensors that it has given to a call, and of what they lie in, without their contents; None
    where there is something in it now that no task's inputs hold."""

    def tensor(item: torch.Tensor) -> list[Any]:
        return [str(item.dtype), list(item.shape), list(item.stride()), item.data_ptr(), item.requires_grad]

    try:
        return _encode(value, tensor, 0)
    except Unsupported:
        return None


def nbytes_needed(value: Any) -> int:
    """Upper bound of the bytes that `pack` uses for `value`, offsets included."""
    return sum(extent(t) * t.element_size() + VECTOR_BYTES + ALIGNMENT for t in leaves(value)) + ALIGNMENT


def leaves(value: Any) -> list[torch.Tensor]:
    """All tensors in a nested value, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for v in value.values() for t in leaves(v)]
    if isinstance(value, list | tuple):
        return [t for v in value for t in leaves(v)]
    return []


def map_leaves(value: Any, function: Any) -> Any:
    """The same nested value with every tensor replaced by `function(tensor)`."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, dict):
        return {k: map_leaves(v, function) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_leaves(v, function) for v in value))
    if isinstance(value, list | tuple):
        return type(value)(map_leaves(v, function) for v in value)
    return value


def with_leaves(value: Any, tensors: Iterable[torch.Tensor]) -> Any:
    """The same nested value with other tensors in the places of its own, in the order of `leaves`."""
    others = iter(tensors)
    return map_leaves(value, lambda tensor: next(others))


def as_real(tensor: torch.Tensor) -> torch.Tensor:
    """A view with the two parts of complex numbers along a new last dimension; other tensors as they are."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


_INERT = (type(None), bool, int, float, complex, str, torch.dtype, torch.device, slice)


def number_on(device: str, dtype: torch.dtype = torch.float32) -> Callable[[float], torch.Tensor]:
    """What makes a tensor without dimensions of a Python float."""
    return lambda value: _tensor(value, dtype=dtype, device=device)


def _place_of_key(pair: tuple[Any, Any]) -> tuple[str, str]:
    key = pair[0]
    return type(key).__name__, repr(key) if type(key) in _INERT else ""


def settled(value: Any, depth: int = 0, number: Callable[[float], torch.Tensor] | None = None) -> Any:
    """A foreign nested value in plain tuples, lists and dicts, as their own storage holds it: no method of a subclass
    is called, so that nothing can be put off until somebody looks. Dicts are in the order of their keys: equal ones may
    have been filled in any. `number`: makes tensors of Python floats, which are rounded as tensors are. What is neither
    that nor a tensor becomes a text."""
    kind = type(value)
    if kind is float and number is not None:
        return {"float": number(value)}
    if kind is torch.Tensor or kind is torch.nn.Parameter or kind in _INERT:
        return value
    if depth > MAX_DEPTH:
        raise Unsupported("nested too deeply")
    if issubclass(kind, tuple):
        return tuple([settled(v, depth + 1, number) for v in tuple.__iter__(value)])
    if issubclass(kind, list):
        return [settled(v, depth + 1, number) for v in list.__iter__(value)]
    if issubclass(kind, dict):
        pairs = [(settled(k, depth + 1), settled(v, depth + 1, number)) for k, v in dict.items(value)]
        return dict(sorted(pairs, key=_place_of_key) if len(pairs) > 1 else pairs)
    if issubclass(kind, torch.Tensor):
        return value
    return f"<{kind.__module__}.{kind.__qualname__}>"


def pack(value: Any, buffer: Buffer, *, offset: int = 0) -> Any:
    """Describe `value`, and lay its tensors into `buffer` with their strides. Raises Unsupported.

    `offset`: every tensor starts so many bytes into its storage, whole elements, `VECTOR_BYTES` at most; 1 is one
    element, off the alignment.
    """
    return _placed(value, lambda item, described: write(item, described, buffer), offset)


def places(like: list[torch.Tensor]) -> list[dict[str, Any]]:
    """Where `pack` lays such tensors, of which nothing is laid there. Raises Unsupported."""
    return list(_placed(like, lambda item, described: None)["$list"])


def _placed(value: Any, lay: Callable[[torch.Tensor, dict[str, Any]], None], offset: int = 0) -> Any:
    cursor = 0

    def tensor(item: torch.Tensor) -> dict[str, Any]:
        nonlocal cursor
        if problem := plain_tensor_problem(item):
            raise Unsupported(problem)
        size = item.element_size()
        skip = -(-offset // size)
        start, cursor = _reserve(cursor, (extent(item) + skip) * size)
        described = {
            "$tensor": str(item.dtype).removeprefix("torch."),
            "shape": list(item.shape),
            "stride": list(item.stride()),
            "at": start,
            "skip": skip,
        }
        lay(item, described)
        return described

    return _encode(value, tensor, 0)


def write(item: torch.Tensor, described: dict[str, Any], buffer: Buffer) -> None:
    """Copy the values of `item` to where `described` says."""
    source, target = _flat_pair(item, described, buffer)
    _copy(target, source)


def rewrite(value: Any, description: Any, buffer: Buffer) -> None:
    """Lay another value of the same structure, shapes and strides into the places of `description`.

    No tensor is complete before all of them nearly are: one element of each thousand or so comes last, at a secret
    place. Whoever watches the memory has no head start with one input while another is still being written. A product
    can be begun without a thousandth of its input: large tensors come first, so that little is written after any.
    """
    held_back = []
    pairs = list(zip(leaves(value), tensor_descriptions(description), strict=True))
    for item, described in sorted(pairs, key=lambda pair: -extent(pair[0]) * pair[0].element_size()):
        source, target = _flat_pair(item, described, buffer)
        rows, place = len(source) // _ROW, ENTROPY.randrange(_ROW)
        table, new = (flat[: rows * _ROW].view(rows, _ROW) for flat in (target, source))
        _copy(table[:, :place], new[:, :place])
        _copy(table[:, place + 1 :], new[:, place + 1 :])
        held_back += [(table[:, place], new[:, place]), (target[rows * _ROW :], source[rows * _ROW :])]
    for target, source in held_back:
        _copy(target, source)


def _flat_pair(item: torch.Tensor, described: dict[str, Any], buffer: Buffer) -> tuple[torch.Tensor, torch.Tensor]:
    """(all elements of a tensor with the gaps between them, the place for them), one dimension each."""
    count = extent(item)
    return _as_strided(item.detach(), (count,), (1,), item.storage_offset()), _flat_view(described, count, buffer)


def tensor_descriptions(description: Any) -> list[dict[str, Any]]:
    """The tensor descriptions inside a description, in the order of `leaves`."""
    if isinstance(description, dict):
        if "$tensor" in description:
            return [description]
        if "$dict" in description:
            return [t for _, v in description["$dict"] for t in tensor_descriptions(v)]
        inner = description.get("$tuple") or description.get("$list") or []
        return [t for v in inner for t in tensor_descriptions(v)]
    return []


def _flat_view(described: dict[str, Any], count: int, buffer: Buffer) -> torch.Tensor:
    dtype = _dtype(described["$tensor"])
    size = dtype.itemsize
    flat = buffer.bytes_at(described["at"], (count + described["skip"]) * size).view(dtype)
    return flat[described["skip"] :]


def _dtype(name: Any) -> torch.dtype:
    found = _DTYPES.get(name) if isinstance(name, str) else None
    if found is None:
        raise Unsupported(f"there is no dtype {name!r}"[:100])
    return found


def view(described: dict[str, Any], buffer: Buffer) -> torch.Tensor:
    """The tensor that `described` names, as a view of the shared bytes with its own storage.

    Raises Unsupported for a dtype that there is not, ValueError for a place outside the buffer.
    """
    shape, stride = described["shape"], described["stride"]
    count = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    flat = _flat_view(described, count, buffer)
    return _as_strided(flat, shape, stride, flat.storage_offset())


def unpack(description: Any, buffer: Buffer, depth: int = 0) -> Any:
    """The value that `description` names; tensors are views of `buffer`. Raises Unsupported on malformed text."""
    if depth > MAX_DEPTH:
        raise Unsupported("nested too deeply")
    if not isinstance(description, dict):
        return description
    if "$tensor" in description:
        return view(description, buffer)
    for tag, make in (("$tuple", tuple), ("$list", list)):
        if tag in description:
            return make(unpack(v, buffer, depth + 1) for v in description[tag])
    if "$dict" in description:
        return {unpack(k, buffer, depth + 1): unpack(v, buffer, depth + 1) for k, v in description["$dict"]}
    if "$dtype" in description:
        return _dtype(description["$dtype"])
    if "$device" in description:
        return torch.device(description["$device"])
    if "$slice" in description:
        return slice(*description["$slice"])
    if "$complex" in description:
        return complex(*description["$complex"])
    raise Unsupported(f"unknown tag {sorted(description)[:3]}")


def _encode(value: Any, tensor: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise Unsupported("nested too deeply")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if isinstance(value, tuple):
        return {"$tuple": [_encode(v, tensor, depth + 1) for v in value]}
    if isinstance(value, list):
        return {"$list": [_encode(v, tensor, depth + 1) for v in value]}
    if isinstance(value, dict):
        return {"$dict": [[_encode(k, tensor, depth + 1), _encode(v, tensor, depth + 1)] for k, v in value.items()]}
    if isinstance(value, torch.dtype):
        return {"$dtype": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"$device": str(value)}
    if isinstance(value, slice):
        return {"$slice": [value.start, value.stop, value.step]}
    if isinstance(value, complex):
        return {"$complex": [value.real, value.imag]}
    raise Unsupported(f"a {type(value).__name__}; tensors, numbers, strings, tuples, lists and dicts can")
