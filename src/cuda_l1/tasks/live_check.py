"""Run a printed module once beside the live one: the text must compute what the module computes."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cuda_l1.errors import TaskError
from cuda_l1.tasks.own_modules import forget_own_modules

if TYPE_CHECKING:
    import torch

# Both sides run the same kernels on the same values; what differs is a fused path or another order of threads.
_RELATIVE_ERROR = {8: 1e-9, 4: 1e-3, 2: 5e-2}

_PLAIN = (bool, int, float, str, type(None))


def check_printed(
    source: str, module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], *, same_class: bool = False
) -> None:
    """Raises TaskError where the printed `Model` with the module's state disagrees with the module on the examples.

    With `same_class` numbers, strings and flags of the module and its children must be equal too. The state of the
    module, its arguments and the global seed are as before afterwards.
    """
    try:
        _check(source, module, args, kwargs, same_class)
    finally:
        forget_own_modules()


def _check(
    source: str, module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], same_class: bool
) -> None:
    import torch

    name = type(module).__name__
    arguments = [*args, *kwargs.values()]
    printed = _construct(source, module)
    if set(printed.state_dict()) != set(module.state_dict()):
        raise TaskError(f"{name}: the printed program has another state_dict")
    if same_class and (odd := _different_number(printed, module)):
        raise TaskError(f"{name}: newly constructed it has another value of `{odd}`")
    with torch.no_grad(), _kept_numbers(module):
        for _ in range(2):  # a second call of the module finds what the first one left outside its tensors
            with _kept_tensors(printed):
                got = _run(printed, arguments, {}, f"{name}, printed,")
            with _kept_tensors(module):
                expected = _run(module, args, kwargs, name)
            _compare(name, expected, got)


def check_runs(module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raises TaskError where the module's own forward raises on the examples; state and seed are as before."""
    import torch

    with torch.no_grad(), _kept_numbers(module), _kept_tensors(module):
        _run(module, args, kwargs, f"{type(module).__name__}: its own forward")


def _compare(name: str, expected: Sequence[Any], got: Sequence[Any]) -> None:
    if len(expected) != len(got):
        raise TaskError(f"{name}: the printed program gives {len(got)} outputs, the module {len(expected)}")
    for index, (want, have) in enumerate(zip(expected, got, strict=True)):
        if not _agree(want, have):
            raise TaskError(
                f"{name}: the printed program gives another output {index} than the module; "
                "its forward depends on something that is neither an argument nor a tensor of the module"
            )


def _construct(source: str, module: torch.nn.Module) -> torch.nn.Module:
    """`Model` from the text, with the state of `module`, on its device."""
    import torch

    tensors = [*module.parameters(), *module.buffers()]
    device = tensors[0].device if tensors else torch.device("cpu")
    namespace: dict[str, Any] = {"__name__": "cuda_l1_printed"}
    try:
        with torch.random.fork_rng(), device:
            exec(compile(source, "<printed module>", "exec"), namespace)
            printed = namespace["Model"](*namespace["get_init_inputs"]())
        printed.load_state_dict(module.state_dict())
    except Exception as error:  # noqa: BLE001 - the boundary to code of the user's: it may raise anything
        raise TaskError(f"{type(module).__name__}: the printed program cannot be built: {_line(error)}") from None
    if not isinstance(printed, torch.nn.Module):
        raise TaskError(f"{type(module).__name__}: `Model` is not a torch.nn.Module")
    return printed.to(device)


def _run(module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], name: str) -> list[Any]:
    """The flat outputs of one call on copies of the arguments, always under the same seed."""
    import torch
    import torch.utils._pytree as pytree

    arguments, keywords = pytree.tree_map_only(torch.Tensor, lambda x: x.detach().clone(), (list(args), dict(kwargs)))
    try:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return pytree.tree_leaves(module(*arguments, **keywords))
    except Exception as error:  # noqa: BLE001 - the boundary to code of the user's: it may raise anything
        raise TaskError(f"{name} raises on the example inputs: {_line(error)}") from None


def _line(error: Exception) -> str:
    text = "".join(traceback.format_exception_only(error)).strip().splitlines()
    return " ".join(text[:1])[:300]


@contextlib.contextmanager
def _kept_numbers(module: torch.nn.Module) -> Iterator[None]:
    """Put back numbers, strings and flags that a call changes on the module or its children."""
    before = [(owner, _plain(owner)) for owner in module.modules()]
    try:
        yield
    finally:
        for owner, values in before:
            vars(owner).update(values)


def _plain(owner: torch.nn.Module) -> dict[str, Any]:
    return {key: value for key, value in vars(owner).items() if isinstance(value, _PLAIN)}


def _different_number(first: torch.nn.Module, second: torch.nn.Module) -> str | None:
    """The dotted name of a plain attribute in which two modules differ, or None."""
    others = dict(second.named_modules())
    for path, owner in first.named_modules():
        mine, theirs = _plain(owner), _plain(others[path]) if path in others else {}
        for key in sorted(mine.keys() | theirs.keys()):
            if repr(mine.get(key)) != repr(theirs.get(key)):
                return f"{path}.{key}".lstrip(".")
    return None


@contextlib.contextmanager
def _kept_tensors(module: torch.nn.Module) -> Iterator[None]:
    """Put back what a call changes: buffers, and tensors kept as plain attributes."""
    import torch

    buffers = [(buffer, buffer.detach().clone()) for buffer in module.buffers()]
    plain = [
        (owner, key, value, value.detach().clone())
        for owner in module.modules()
        for key, value in vars(owner).items()
        if isinstance(value, torch.Tensor)
    ]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)
            for owner, key, value, before in plain:
                value.copy_(before)
                setattr(owner, key, value)


def _agree(want: Any, have: Any) -> bool:
    import torch

    if not isinstance(want, torch.Tensor) or not isinstance(have, torch.Tensor):
        return type(want) is type(have) and bool(want == have or want != want)
    if want.shape != have.shape or want.dtype != have.dtype:
        return False
    if not (want.is_floating_point() or want.is_complex()):
        return torch.equal(want, have)
    wide = torch.complex128 if want.is_complex() else torch.float64
    a, b = want.to(wide), have.to(wide)
    finite = torch.isfinite(a)
    if not torch.equal(finite, torch.isfinite(b)):
        return False
    a, b = a[finite], b[finite]
    if a.numel() == 0:
        return True
    limit = _RELATIVE_ERROR.get(want.dtype.itemsize, 1e-1)
    return bool((a - b).abs().max() <= limit * a.abs().max().clamp(min=1e-12))
