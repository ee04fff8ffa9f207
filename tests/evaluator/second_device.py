"""A GPU where there is none: tensors on `cuda:0` that lie in the host's memory and refuse to meet the host's own.

Where the judge puts a tensor shows on a GPU alone: on a CPU all are in one place. These compute on the CPU what a GPU
would, and an operation on tensors of both places raises torch's own error. They own no storage and start no kernels,
so that nothing that asks for addresses or times can be tested so.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

_T = torch.Tensor
_OF_ITSELF: frozenset[Any] = frozenset(
    getattr(_T, name).__get__
    for name in (
        *("device", "dtype", "shape", "layout", "requires_grad", "grad", "grad_fn", "is_cpu", "is_cuda", "is_leaf"),
        *("is_meta", "is_sparse", "_backward_hooks", "_version"),
    )
) | {_T.requires_grad_}
"""What a tensor says of itself, rather than of its values."""
_INDEXING = {"__getitem__", "__setitem__", "index", "index_put_"}
_MOVING = {"to", "cuda", "cpu"}
_READING = {
    *("item", "tolist", "numpy", "__bool__", "__float__", "__int__", "__index__", "__contains__", "is_nonzero"),
    *("equal", "allclose", "nonzero", "argwhere", "masked_select", "unique", "unique_consecutive"),
}
"""What gives Python values, or a tensor whose shape depends on values: nobody knows it before the device has come to
it."""
_waits: list[list[str]] = []


class OnDevice(torch.Tensor):
    """A tensor of the device; `values` are in the host's memory."""

    values: torch.Tensor

    @staticmethod
    def __new__(cls, values: torch.Tensor) -> OnDevice:
        form = {"strides": values.stride(), "storage_offset": values.storage_offset(), "dtype": values.dtype}
        made: OnDevice = _T._make_wrapper_subclass(cls, values.shape, device="cuda:0", **form)
        return made

    def __init__(self, values: torch.Tensor) -> None:
        self.values = values

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _compute(op, args, kwargs or {}, op._schema.name.partition("::")[2])

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return memo.setdefault(id(self), _like(self, self.values.detach().clone()))

    def data_ptr(self) -> int:
        return self.values.data_ptr()


def _leaves(items: Iterable[Any]) -> Iterator[Any]:
    """What lies in arguments, however deep. By hand: torch's own trees take most of the time of a test of these."""
    for item in items:
        if isinstance(item, tuple | list):
            yield from _leaves(item)
        elif isinstance(item, dict):
            yield from _leaves(item.values())
        else:
            yield item


def _mapped(change: Callable[[Any], Any], item: Any) -> Any:
    """The same with every leaf changed. A tuple with names is made again from its fields."""
    if isinstance(item, tuple | list):
        made = [_mapped(change, each) for each in item]
        return type(item)(*made) if hasattr(item, "_fields") else type(item)(made)
    if isinstance(item, dict):
        return {key: _mapped(change, each) for key, each in item.items()}
    return change(item)


def _like(tensor: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    made = OnDevice(values)
    return torch.nn.Parameter(made, False) if isinstance(tensor, torch.nn.Parameter) else made


def _values(item: Any) -> Any:
    return item.values if isinstance(item, OnDevice) else item


def _is_device(device: Any) -> bool:
    return device is not None and torch.device(device).type == "cuda"


def _moved(tensor: torch.Tensor, name: str, args: Any, kwargs: dict[str, Any]) -> torch.Tensor:
    """`to`, `cuda` and `cpu`: a copy where the place is another one, as there."""
    copy, dtype = kwargs.pop("copy", False), None
    if name != "to":
        to_device = name == "cuda"
    elif args and isinstance(args[0], torch.Tensor):
        to_device, dtype = isinstance(args[0], OnDevice), args[0].dtype
    else:
        device, dtype, *_ = torch._C._nn._parse_to(*args, **kwargs)
        to_device = isinstance(tensor, OnDevice) if device is None else device.type == "cuda"
    values = _values(tensor)
    made = values if dtype is None else values.to(dtype)
    if made is values and (copy or to_device != isinstance(tensor, OnDevice)):
        made = values.clone()
    if made is values:
        return tensor
    return _like(tensor, made) if to_device else made


def _waits_for(name: str, args: Any, kwargs: dict[str, Any], made: Any) -> bool:
    """Whether a process would wait for a GPU here."""
    if name in ("tensor", "as_tensor"):
        return isinstance(made, OnDevice)
    if name in _MOVING or name == "copy_":
        source, target = (args[0], made) if name in _MOVING else (args[1], args[0])
        crosses = isinstance(source, OnDevice) != isinstance(target, OnDevice)
        return crosses and not (kwargs.get("non_blocking") and isinstance(target, OnDevice))
    if name in _INDEXING:
        indices = [i for i in _leaves([args[1]]) if isinstance(i, torch.Tensor)]
        there = [isinstance(i, OnDevice) for i in indices]
        # one without dimensions is asked for its number, and those of the host are handed over
        return any(
            is_there == (i.dtype is torch.bool or i.dim() == 0) for i, is_there in zip(indices, there, strict=True)
        )
    return name in _READING


def _compute(func: Callable[..., Any], args: Any, kwargs: dict[str, Any], name: str) -> Any:
    made = _computed(func, args, kwargs, name)
    if _waits and _waits_for(name, args, kwargs, made):
        stack = [f for f in traceback.extract_stack() if "cuda_l1" in f.filename or "/test_" in f.filename]
        frame = stack[-1]
        _waits[-1].append(f"{name} in {frame.name}, {frame.filename}:{frame.lineno}")
    return made


@contextmanager
def waits() -> Iterator[list[str]]:
    """Where in it a process would wait for the device, one entry for each time."""
    _waits.append([])
    try:
        yield _waits[-1]
    finally:
        _waits.pop()


def _computed(func: Callable[..., Any], args: Any, kwargs: dict[str, Any], name: str) -> Any:
    """The function of the values. Raises RuntimeError where tensors of both places meet, other than to be copied, to
    index a device's with the host's, or as single numbers."""
    if name in _MOVING:
        return _moved(args[0], name, args[1:], dict(kwargs))
    tensors = [item for item in _leaves((args, kwargs)) if isinstance(item, torch.Tensor)]
    on_device = any(isinstance(tensor, OnDevice) for tensor in tensors)
    may_meet = name == "copy_" or (name in _INDEXING and isinstance(args[0], OnDevice))
    if on_device and not may_meet and any(not isinstance(t, OnDevice) and t.dim() > 0 for t in tensors):
        raise RuntimeError(f"Expected all tensors to be on the same device, but found cuda:0 and cpu ({name})")
    if name == "copy_":
        on_device = isinstance(args[0], OnDevice)
    if kwargs.get("device") is not None:
        on_device, kwargs = _is_device(kwargs["device"]), {**kwargs, "device": "cpu"}
    bare_args, bare_kwargs = _mapped(_values, (args, kwargs))
    made = func(*bare_args, **bare_kwargs)
    known = {id(_values(tensor)): tensor for tensor in tensors}

    def placed(item: Any) -> Any:
        return known.get(id(item), OnDevice(item) if on_device else item) if isinstance(item, torch.Tensor) else item

    return _mapped(placed, made)


class _Device(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        with torch._C.DisableTorchFunction():
            items = _leaves((args, kwargs))
            concerned = any(isinstance(item, OnDevice) for item in items) or _is_device(kwargs.get("device"))
            if func not in _OF_ITSELF and (concerned or func in (_T.to, _T.cuda)):
                return _compute(func, args, kwargs, func.__name__)
        return func(*args, **kwargs)


@contextmanager
def second_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In it `cuda` is such a device, also for the functions of the judge that ask torch about a GPU."""
    room = 1 << 34
    for name, answer in (
        ("_lazy_init", None),
        ("synchronize", None),
        ("empty_cache", None),
        ("mem_get_info", (room, room)),
    ):
        monkeypatch.setattr(torch.cuda, name, lambda *args, answer=answer: answer)
    with _Device():
        yield
