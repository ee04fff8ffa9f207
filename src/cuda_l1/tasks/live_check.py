"""Run a printed module once beside the live one: the text must compute what the module computes."""

from __future__ import annotations

import contextlib
import traceback
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cuda_l1.errors import TaskError
from cuda_l1.tasks.own_modules import forget_own_modules
from cuda_l1.texts import many

if TYPE_CHECKING:
    import torch

# Both sides run the same kernels on the same values; what differs is a fused path or another order of threads.
_RELATIVE_ERROR = {8: 1e-9, 4: 1e-3, 2: 5e-2}

_PLAIN = (bool, int, float, str, type(None))
_CONTAINERS = (dict, list, set, deque, tuple)


class ChangesItself(TaskError):
    """`forward` leaves other Python values behind at every call, which no program that is printed once can follow."""

    def __init__(self, module: str, attribute: str) -> None:
        super().__init__(
            f"{module}: its forward changes `{attribute}` from call to call, which a printed program cannot follow; "
            "change it outside of forward, or keep it in a buffer that is changed in place"
        )


def check_printed(
    source: str, module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], *, same_class: bool = False
) -> None:
    """Raises TaskError where the printed `Model` with the module's state disagrees with the module on the examples.

    With `same_class` numbers, strings and flags of the module and its children must be equal too. The state of the
    module, its arguments and the global seed are as before afterwards. Raises ChangesItself where attributes made of
    numbers, strings and containers are others after the second call than after the first: what settles in one call
    (a flag, the length of a table) is covered by the second, a counter is not.
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
    with torch.no_grad(), kept_attributes(module):
        left: list[dict[str, str]] = []
        for _ in range(2):  # a second call of the module finds what the first one left outside its tensors
            with _kept_tensors(module):
                expected, expected_after = _run(module, args, kwargs, name)
                buffers = {key: buffer.clone() for key, buffer in module.named_buffers()}
            left.append(_python_values(module))
            if odd := _difference(left[0], left[-1]):
                raise ChangesItself(name, odd)
            with _kept_tensors(printed):
                got, got_after = _run(printed, arguments, {}, f"{name}, printed,")
                _compare_buffers(name, buffers, dict(printed.named_buffers()))
            _compare(name, expected, got)
            if len(expected_after) != len(got_after) or not all(map(_agree, expected_after, got_after)):
                raise TaskError(f"{name}: the printed program changes an argument otherwise than the module")


def check_runs(module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raises TaskError where the module's own forward raises on the examples; state and seed are as before."""
    import torch

    with torch.no_grad(), kept_attributes(module), _kept_tensors(module):
        _run(module, args, kwargs, f"{type(module).__name__}: its own forward")


def _compare(name: str, expected: Sequence[Any], got: Sequence[Any]) -> None:
    if len(expected) != len(got):
        raise TaskError(f"{name}: the printed program gives {many(len(got), 'output')}, the module {len(expected)}")
    for index, (want, have) in enumerate(zip(expected, got, strict=True)):
        if not _agree(want, have):
            raise TaskError(
                f"{name}: the printed program gives another output {index} than the module; "
                "its forward depends on something that is neither an argument nor a tensor of the module"
            )


def _compare_buffers(name: str, expected: Mapping[str, Any], got: Mapping[str, Any]) -> None:
    import torch

    for key, want in expected.items():
        plain = want.layout is torch.strided and not want.is_quantized
        if plain and key in got and not _agree(want, got[key]):
            raise TaskError(f"{name}: the printed program leaves other values in the buffer `{key}` than the module")


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
        raise TaskError(f"{type(module).__name__}: the printed program cannot be built: {call_error(error)}") from None
    if not isinstance(printed, torch.nn.Module):
        raise TaskError(f"{type(module).__name__}: `Model` is not a torch.nn.Module")
    return printed.to(device)


def _run(
    module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], name: str
) -> tuple[list[Any], list[Any]]:
    """The flat outputs of one call on copies of the arguments and the flat copies after it; always the same seed."""
    import torch
    import torch.utils._pytree as pytree

    arguments, keywords = pytree.tree_map_only(torch.Tensor, lambda x: x.detach().clone(), (list(args), dict(kwargs)))
    try:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            outputs = pytree.tree_leaves(module(*arguments, **keywords))
        return outputs, [*pytree.tree_leaves(arguments), *pytree.tree_leaves(list(keywords.values()))]
    except Exception as error:  # noqa: BLE001 - the boundary to code of the user's: it may raise anything
        raise TaskError(f"{name} raises on the example inputs: {call_error(error)}") from None


def call_error(error: Exception) -> str:
    """The first line of what was raised, under its class."""
    text = "".join(traceback.format_exception_only(error)).strip().splitlines()
    return " ".join(text[:1])[:300]


@contextlib.contextmanager
def kept_attributes(module: torch.nn.Module) -> Iterator[None]:
    """Put back what a call or a trace assigns on the module and its children, also where it raises.

    Attributes, the parameters and buffers that stand under each name (also None), and items of containers; not what
    tensors hold.
    """
    before: dict[int, tuple[Any, Any]] = {}
    for owner in module.modules():
        _remember(vars(owner), before)
    try:
        yield
    finally:
        for container, items in before.values():
            _put_back(container, items)


def _remember(value: Any, before: dict[int, tuple[Any, Any]]) -> None:
    """Add `value` and the containers in it to `before`: id -> (container, a copy of its items)."""
    if id(value) in before or not isinstance(value, _CONTAINERS):
        return
    items = dict(value) if isinstance(value, dict) else list(value)
    before[id(value)] = (value, items)
    for item in items.values() if isinstance(items, dict) else items:
        _remember(item, before)


def _put_back(container: Any, items: Any) -> None:
    if isinstance(container, dict):
        if list(container) != list(items):  # the order of parameters is that of the state_dict
            container.clear()
        if any(key not in container or container[key] is not item for key, item in items.items()):
            container.update(items)
    elif isinstance(container, set):
        container.clear()
        container.update(items)
    elif not isinstance(container, tuple):
        container.clear()
        container.extend(items)


def _python_values(module: torch.nn.Module) -> dict[str, str]:
    """Dotted name -> text of every attribute's numbers and strings; of anything else in it only the type."""
    import torch

    tables = vars(torch.nn.Module()).keys() - {"training"}
    return {
        f"{path}.{key}".lstrip("."): _text(value, set())
        for path, owner in module.named_modules()
        for key, value in vars(owner).items()
        if key not in tables
    }


def _text(value: Any, around: set[int]) -> str:
    """`around`: the containers that hold `value`; one that holds itself ends there."""
    if isinstance(value, _PLAIN):
        return repr(value)
    kind = type(value).__name__
    if not isinstance(value, _CONTAINERS) or id(value) in around:
        return kind
    inner = around | {id(value)}
    items = [item for pair in value.items() for item in pair] if isinstance(value, dict) else value
    return f"{kind}({', '.join(_text(item, inner) for item in items)})"


def _difference(first: Mapping[str, str], second: Mapping[str, str]) -> str | None:
    """The first key whose values differ, or None."""
    return next((key for key in sorted(first.keys() | second.keys()) if first.get(key) != second.get(key)), None)


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

    plain = [
        (owner, key, value)
        for owner in module.modules()
        for key, value in vars(owner).items()
        if isinstance(value, torch.Tensor)
    ]
    memory = [_memory(tensor.detach()) for tensor in (*module.buffers(), *(value for _, _, value in plain))]
    before = [tensor.clone() for tensor in memory]
    try:
        yield
    finally:
        for tensor, values in zip(memory, before, strict=True):
            with torch.inference_mode(tensor.is_inference()), torch.no_grad():
                tensor.copy_(values)
        for owner, key, value in plain:
            setattr(owner, key, value)


def _memory(tensor: torch.Tensor) -> torch.Tensor:
    """The elements that `tensor` reaches, each once: nothing can be written through an expanded tensor."""
    import torch

    if tensor.layout is not torch.strided or tensor.numel() == 0:
        return tensor
    reach = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    overlaps = 0 in tensor.stride() or reach < tensor.numel()
    return tensor.as_strided((reach,), (1,)) if overlaps else tensor


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
