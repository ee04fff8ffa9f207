"""A model in other arithmetics: in float64, which is truth, without TF32, with it, and under autocast to bfloat16."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from types import CellType, FunctionType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from . import nesting, state
from .deep_convolutions import CONVOLUTIONS, convolve
from .dispatch import DispatchMode
from .perturbations import neighbour
from .tensors import leaves, map_leaves

_LOWER = {
    torch.float64: (torch.float32, torch.float16, torch.bfloat16),
    torch.float32: (torch.float16, torch.bfloat16),
}
_CASTS = {torch.Tensor.float: torch.float32, torch.Tensor.half: torch.float16, torch.Tensor.bfloat16: torch.bfloat16}
_DRAWS = (torch.rand, torch.randn, torch.rand_like, torch.randn_like)
_READ_BITS = (torch.Tensor.view, torch.ops.aten.view.dtype)


class _Lifted(TorchFunctionMode):
    """Casts to a lower floating type that the reference spells out become casts to `dtype`. Random numbers are those of
    the type that it asks for, `default` where it names none: those of another are others, and with a seed of its own
    the reference gives the same ones in every call."""

    def __init__(self, dtype: torch.dtype, default: torch.dtype) -> None:
        super().__init__()
        self._dtype, self._lower, self._default = dtype, _LOWER[dtype], default

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if torch.compiler.is_compiling():  # which the guard below would keep from capturing the whole
            return self._call(func, args, kwargs)
        with torch._C._DisableAutocast():  # which a model enters; of float64 it leaves types as they are by itself
            return self._call(func, args, kwargs)

    def _call(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if _CASTS.get(func) in self._lower:
            return args[0].to(self._dtype)
        if func in _DRAWS and (own := kwargs.get("dtype") or self._default) in self._lower:
            return func(*args, **{**kwargs, "dtype": own}).to(self._dtype)
        if kwargs.get("dtype") in self._lower:
            kwargs["dtype"] = self._dtype
        if func not in _READ_BITS:  # in all others a dtype is what is computed in
            args = tuple(self._dtype if isinstance(a, torch.dtype) and a in self._lower else a for a in args)
        if func in CONVOLUTIONS:
            return convolve(func, args, kwargs)
        try:
            return func(*args, **kwargs)
        except RuntimeError as error:
            if "Double" not in str(error) or not _may_be_narrowed(func, args, kwargs):
                raise
        made = func(*map_leaves(args, _narrowed), **map_leaves(kwargs, _narrowed))
        return map_leaves(made, lambda t: t.double() if t.dtype is torch.float32 else t)


def _may_be_narrowed(func: Any, args: Any, kwargs: dict[str, Any]) -> bool:
    """Whether an operator that refuses float64, as those that quantise do, may have float32 instead: not one that
    writes to an argument, nor where widths were mixed."""
    floating = [t for t in leaves([args, kwargs]) if t.is_floating_point()]
    writes = getattr(func, "__name__", "_").endswith("_") or "out" in kwargs
    return bool(floating) and not writes and all(t.dtype is torch.float64 for t in floating)


def _narrowed(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float() if tensor.dtype is torch.float64 else tensor


PRODUCTS = frozenset(
    f
    for f in (
        torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.Tensor.__rmatmul__, torch.mm,
        torch.Tensor.mm, torch.bmm, torch.Tensor.bmm, torch.addmm, torch.baddbmm, torch.einsum,
        torch.nn.functional.linear, torch.nn.functional.conv1d, torch.nn.functional.conv2d,
        torch.nn.functional.conv3d, torch.nn.functional.conv_transpose1d, torch.nn.functional.conv_transpose2d,
        torch.nn.functional.conv_transpose3d, torch.nn.functional.scaled_dot_product_attention,
        torch.nn.functional.bilinear, torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu, torch.conv2d,
        torch.lstm_cell, torch.gru_cell, torch.rnn_tanh_cell, torch.rnn_relu_cell,
    )
)  # fmt: skip
"""Functions of torch that multiply matrices or convolve."""


class _RoundedOperands(TorchFunctionMode):
    """Operands of products and convolutions go through `rounding`."""

    def __init__(self, rounding: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self._rounding = rounding

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in PRODUCTS:
            args, kwargs = map_leaves(args, self._rounding), map_leaves(kwargs or {}, self._rounding)
        return func(*args, **(kwargs or {}))


_aten = torch.ops.aten
_MULTIPLY = frozenset((_aten.mm, _aten.addmm, _aten.bmm, _aten.baddbmm, _aten.mv, _aten.addmv, _aten.convolution))


class _WideProducts(DispatchMode):
    """Products of bfloat16 numbers, and convolutions, are computed in float32 and rounded once, as units for them do. A
    CPU without any takes a hundred times as long for each."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        narrow = args and isinstance(args[0], torch.Tensor) and args[0].dtype is torch.bfloat16
        if not (narrow and func.overloadpacket in _MULTIPLY):
            return func(*args, **(kwargs or {}))
        return func(*map_leaves(args, _widened), **(kwargs or {})).to(torch.bfloat16)


_ADD_UP = _MULTIPLY | {
    *(_aten.sum, _aten.mean, _aten.var, _aten.var_mean, _aten.cumsum, _aten.linalg_vector_norm),
    *(_aten._fft_r2c, _aten._fft_c2r, _aten._fft_c2c),
}  # fmt: skip
"""Operations whose results depend on the order in which they add up."""


class _SumsByChance(DispatchMode):
    """Each result of `_ADD_UP` is the next number above or below, by chance, as another order might give it."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        return map_leaves(made, neighbour) if func.overloadpacket in _ADD_UP else made


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float() if tensor.dtype is torch.bfloat16 else tensor


def round_to_tf32(tensor: torch.Tensor) -> torch.Tensor:
    """float32 rounded to nearest at 10 bits of mantissa; other dtypes unchanged."""
    if tensor.dtype is not torch.float32:
        return tensor
    bits = tensor.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


def round_to_tf32_by_chance(tensor: torch.Tensor) -> torch.Tensor:
    """float32 rounded to one of the two neighbours with 10 bits of mantissa, to the nearer the likelier (stochastic
    rounding: no bias); other dtypes, and what is not finite, unchanged."""
    if tensor.dtype is not torch.float32:
        return tensor
    bits = tensor.contiguous().view(torch.int32)
    rounded = ((bits + torch.randint_like(bits, 0x2000)) & ~0x1FFF).view(torch.float32)
    return torch.where(torch.isfinite(tensor), rounded, tensor)


@contextmanager
def exact_arithmetic() -> Iterator[None]:
    """All reduced-precision modes of the backends off."""
    with backend_precision(tf32=False):
        yield


@contextmanager
def backend_precision(*, tf32: bool) -> Iterator[None]:
    """TF32 of matmul and cuDNN on or off, restored afterwards."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32
    matmul.allow_tf32 = cudnn.allow_tf32 = tf32
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = before


def cast(value: Any, dtype: torch.dtype) -> Any:
    """Floating and complex tensors in a nested value at the width of `dtype`; integers untouched. Always a copy."""
    return map_leaves(value, lambda t: t.to(_at_width(t, dtype), copy=True))


def _at_width(tensor: torch.Tensor, dtype: torch.dtype) -> torch.dtype:
    if tensor.is_complex():
        return torch.complex128 if dtype is torch.float64 else tensor.dtype
    return dtype if tensor.is_floating_point() else tensor.dtype


def cast_model(model: torch.nn.Module, dtype: torch.dtype) -> torch.nn.Module:
    """A deep copy with every floating (and complex) parameter, buffer and plain tensor attribute as wide as `dtype`;
    functions among its attributes and hooks reach the copy where they reached the model."""
    memo: dict[int, Any] = {}
    try:
        twin = copy.deepcopy(model, memo)
    except _UNCOPIED:
        memo = _shared(model)
        twin = copy.deepcopy(model, memo)
    narrow = state.collect(twin)
    _widen(twin, dtype)
    wide = state.collect(twin)
    reached = _Reached(dtype, memo, {id(tensor): wide[name] for name, tensor in narrow.items()}, set(twin.modules()))
    for module in twin.modules():
        for key, value in state.kept(module).items():
            if isinstance(value, FunctionType) or nesting.is_nest(value):
                setattr(module, key, reached.of(value))
        for hooks in (module._forward_pre_hooks, module._forward_hooks):
            hooks.update({key: reached.of(hook) for key, hook in hooks.items()})
    return twin


_UNCOPIED = (TypeError, RuntimeError, AttributeError, pickle.PickleError, copy.Error)
"""What copying raises for what cannot be copied."""


def _shared(model: torch.nn.Module) -> dict[int, Any]:
    """For `copy.deepcopy`, attributes that cannot be copied (a scripted function, a lock): a copy has them, too."""
    shared: dict[int, Any] = {}
    for value in (value for module in model.modules() for value in state.kept(module).values()):
        try:
            copy.deepcopy(value)
        except _UNCOPIED:
            shared[id(value)] = value
    return shared


def _widen(twin: torch.nn.Module, dtype: torch.dtype) -> None:
    twin._apply(lambda t: t.to(_at_width(t, dtype)))  # type: ignore[no-untyped-call]
    parameters = {id(p) for p in twin.parameters()}  # in a list, too, they stay the module's own

    widened: dict[int, torch.Tensor] = {}  # what two hold stays one
    held: list[torch.Tensor] = []  # else another tensor may get the identity of one that is gone

    def wider(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) in parameters:
            return tensor
        if id(tensor) not in widened:
            wide = tensor.to(_at_width(tensor, dtype), copy=True)
            widened[id(tensor)] = widened[id(wide)] = wide
            held.append(tensor)
        return widened[id(tensor)]

    for module in twin.modules():
        for key, value in state.kept(module).items():
            if isinstance(value, torch.Tensor) or next(nesting.tensors(value), None) is not None:
                setattr(module, key, nesting.map_in_place(value, wider))


class _Reached:
    """What functions of a model reach by closures and defaults, and lists hold that are no `ModuleList`, as its copy
    has them: `copy.deepcopy` takes a function for a constant, and `_apply` sees registered modules only."""

    def __init__(
        self,
        dtype: torch.dtype,
        copies: dict[int, Any],
        wider: dict[int, torch.Tensor],
        done: set[torch.nn.Module],
    ) -> None:
        self._dtype, self._copies, self._wider, self._done = dtype, copies, wider, done
        self._own = {id(value) for value in copies.values()}
        self._functions: dict[FunctionType, FunctionType] = {}
        self._within = set[int]()
        """What is being looked into: an object may hold itself."""

    def of(self, value: Any) -> Any:
        """The copy's counterpart of a value; what holds neither tensors nor modules is itself."""
        if isinstance(value, torch.nn.Module):
            return self._module(value)
        if isinstance(value, torch.Tensor):
            copied = self._copies.get(id(value), value)
            return self._wider[id(copied)] if id(copied) in self._wider else value.to(_at_width(value, self._dtype))
        if isinstance(value, FunctionType):
            return self._function(value)
        if id(value) in self._within:
            return value
        if nesting.is_record(value) and id(value) not in self._own:
            value = copy.deepcopy(value, self._copies)  # a function holds it: what is set there is the model's own
        self._within.add(id(value))
        made = nesting.with_items(value, self.of)
        self._within.discard(id(value))
        return made

    def _module(self, module: torch.nn.Module) -> torch.nn.Module:
        own = module if id(module) in self._own else copy.deepcopy(module, self._copies)
        if own not in self._done:
            _widen(own, self._dtype)
            self._done.update(own.modules())
        return own

    def _function(self, function: FunctionType) -> FunctionType:
        if function not in self._functions:
            cells = function.__closure__ or ()
            own = tuple(CellType() for _ in cells)
            made = FunctionType(function.__code__, function.__globals__, function.__name__, None, own or None)
            self._functions[function] = self._functions[made] = made  # before what it reaches: that may be itself
            made.__defaults__, made.__kwdefaults__ = self.of(function.__defaults__), self.of(function.__kwdefaults__)
            made.__dict__.update(function.__dict__)
            for cell, new in zip(cells, own, strict=True):
                with suppress(ValueError):  # it is empty
                    new.cell_contents = self.of(cell.cell_contents)
        return self._functions[function]


def run_lifted(model: torch.nn.Module, args: Sequence[Any], dtype: torch.dtype) -> Any:
    """The output of a model cast to `dtype` (float64 or float32) on inputs cast to it, casts inside it, and those of
    autocast, lifted too."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.no_grad(), exact_arithmetic(), _Lifted(dtype, default):
            return model(*args)
    finally:
        torch.set_default_dtype(default)


def run_float64(model: torch.nn.Module, args: Sequence[Any]) -> Any:
    """`run_lifted` to float64: truth."""
    return run_lifted(model, args, torch.float64)


def run_plain(model: torch.nn.Module, args: Sequence[Any]) -> Any:
    """The output with all TF32 off: the noise floor."""
    with torch.no_grad(), exact_arithmetic():
        return model(*args)


def run_tf32(model: torch.nn.Module, args: Sequence[Any], device: str) -> Any:
    """The output with TF32 on everywhere; on a CPU operands are rounded to 10 bits of mantissa."""
    if device == "cpu":
        with torch.no_grad(), _RoundedOperands(round_to_tf32):
            return model(*args)
    with torch.no_grad(), backend_precision(tf32=True):
        return model(*args)


def run_tf32_rounded(model: torch.nn.Module, args: Sequence[Any]) -> Any:
    """The output with TF32 on everywhere and operands rounded to it before: a GPU's library chooses its algorithms by
    size and layout, and may compute in float32 where it may compute in TF32."""
    with torch.no_grad(), backend_precision(tf32=True), _RoundedOperands(round_to_tf32):
        return model(*args)


def run_tf32_by_chance(model: torch.nn.Module, args: Sequence[Any]) -> Any:
    """The output with TF32 on everywhere where each operand might as well be its other neighbour."""
    with torch.no_grad(), backend_precision(tf32=True), _RoundedOperands(round_to_tf32_by_chance):
        return model(*args)


def run_sums_by_chance(model: torch.nn.Module, args: Sequence[Any]) -> Any:
    """The output with all TF32 off where each sum might as well be its neighbour."""
    with torch.no_grad(), exact_arithmetic(), _SumsByChance():
        return model(*args)


def run_autocast(model: torch.nn.Module, args: Sequence[Any], device: str) -> Any:
    """The output under bf16 autocast."""
    kind = device.split(":")[0]
    products: Any = _WideProducts if kind == "cpu" else nullcontext
    with torch.no_grad(), torch.autocast(kind, dtype=torch.bfloat16), products():
        return model(*args)
