"""Truth, and how far an answer lies from it.

Truth is the reference in float64. The error of a tensor is the maximum over its elements of
|x - truth| / (|truth| + rms(truth)), with rms over the finite elements.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from types import CellType, FunctionType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from . import nesting, state
from .deep_convolutions import CONVOLUTIONS, convolve
from .dispatch import DispatchMode
from .reading import hosted, is_waited_for, read, read_each
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


_CHOICES = {"topk", "argmax", "argmin", "sort", "argsort", "max", "min", "kthvalue", "mode", "median", "nanmedian"}
"""Operations that tell which of several elements it is: of equal ones any."""
_EDGES = {
    *("round", "floor", "ceil", "trunc", "sign", "frac", "fmod", "remainder", "floor_divide", "heaviside"),
    *("bucketize", "searchsorted", "lt", "le", "gt", "ge"),
}
"""Operations that have edges: floating numbers a roundoff apart may have answers far apart."""


class Choices(DispatchMode):
    """`with Choices() as seen: ...`; `seen.found` says whether anything was chosen by its place, `seen.edges` whether
    anything was, or was rounded or compared."""

    def __init__(self) -> None:
        super().__init__()
        self.found = self.edges = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ in _CHOICES:
            self.found |= any(part.dtype is torch.int64 for part in (made if isinstance(made, tuple) else (made,)))
        self.edges |= self.found or _has_edges(func, made, args, kwargs or {})
        return made


def _has_edges(func: Any, made: Any, args: Any, kwargs: dict[str, Any]) -> bool:
    if not (args and isinstance(args[0], torch.Tensor) and args[0].is_floating_point()):
        return False
    rounds_to = made.dtype if isinstance(made, torch.Tensor) and func is _aten._to_copy.default else args[0].dtype
    is_cast = rounds_to.itemsize == 1 or not (rounds_to.is_floating_point or rounds_to.is_complex)
    name = func.overloadpacket.__name__.removesuffix("_")
    return is_cast or name in _EDGES or kwargs.get("rounding_mode") is not None


class _WideProducts(DispatchMode):
    """Products of bfloat16 numbers, and convolutions, are computed in float32 and rounded once, as units for them do. A
    CPU without any takes a hundred times as long for each."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        narrow = args and isinstance(args[0], torch.Tensor) and args[0].dtype is torch.bfloat16
        if not (narrow and func.overloadpacket in _MULTIPLY):
            return func(*args, **(kwargs or {}))
        return func(*map_leaves(args, _widened), **(kwargs or {})).to(torch.bfloat16)


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
    functions among its attributes reach the copy where they reached the model."""
    memo: dict[int, Any] = {}
    twin = copy.deepcopy(model, memo)
    narrow = state.collect(twin)
    _widen(twin, dtype)
    wide = state.collect(twin)
    reached = _Reached(dtype, memo, {id(tensor): wide[name] for name, tensor in narrow.items()}, set(twin.modules()))
    for module in twin.modules():
        for key, value in state.kept(module).items():
            if isinstance(value, FunctionType) or nesting.is_nest(value):
                setattr(module, key, reached.of(value))
    return twin


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
    """The output of a model cast to `dtype` (float64 or float32) on inputs cast to it, casts inside it lifted too."""
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


def run_autocast(model: torch.nn.Module, args: Sequence[Any], device: str) -> Any:
    """The output under bf16 autocast."""
    kind = device.split(":")[0]
    products: Any = _WideProducts if kind == "cpu" else nullcontext
    with torch.no_grad(), torch.autocast(kind, dtype=torch.bfloat16), products():
        return model(*args)


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
