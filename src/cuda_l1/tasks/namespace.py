"""A task's text executed in this process, where its own author's trust is enough: for techniques and for drop-ins.

Verdicts never come through here: the judge executes the text in its sandbox.
"""

from __future__ import annotations

import contextlib
import linecache
import sys
import types
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cuda_l1.errors import TaskError
from cuda_l1.tasks.own_modules import forget_own_modules
from cuda_l1.types import digest

if TYPE_CHECKING:
    import torch

MOST_BYTES = 1 << 30
"""What a guess may take: memory for weights and inputs of a task that cannot be constructed on fake tensors."""


@contextlib.contextmanager
def instantiated(source: str, most_bytes: float = MOST_BYTES) -> Iterator[tuple[torch.nn.Module, tuple[Any, ...]]]:
    """(`Model` as `get_init_inputs()` constructs it, the arguments of `get_inputs()`), for the length of a block.

    On fake tensors, which take no memory, and with their mode active in the block; a text that needs numbers
    (`.item()`, `.numpy()`) is run again on real ones of at most `most_bytes`. Gradients are off, output goes to stderr,
    and what the text sets (default dtype, seed, warnings) is put back at the end. Raises TaskError, one line, where
    the text raises anything or `Model` is no `torch.nn.Module`.
    """
    import torch

    with _isolated(), torch.no_grad():
        mode, model, inputs = _instantiate(source, most_bytes)
        with mode:
            yield model, inputs


def namespace(source: str) -> types.ModuleType:
    """Execute a task's text in a module of its own, whatever it raises passing through.

    The module is named after the text and stays in `sys.modules` (dataclasses and pickle look there), its text in
    `linecache` (tracebacks and `inspect` look there) under `<name>`.
    """
    module = types.ModuleType(f"cuda_l1_task_{digest(source)[:12]}")
    module.__file__ = f"<{module.__name__}>"
    linecache.cache[module.__file__] = (len(source), None, source.splitlines(keepends=True), module.__file__)
    sys.modules[module.__name__] = module
    exec(compile(source, module.__file__, "exec"), module.__dict__)
    return module


def _instantiate(source: str, most_bytes: float) -> tuple[Any, torch.nn.Module, tuple[Any, ...]]:
    """(mode to go on in, the model, its arguments)."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    fake = FakeTensorMode(allow_non_fake_inputs=True)
    # What the text makes at module level keeps its numbers where memory allows: a graph may hold it as a constant.
    for around in (_budget(most_bytes), fake):
        try:
            with around:
                module = _executed(source)
            with fake:
                return fake, *_made(module)
        except (Exception, SystemExit):  # noqa: BLE001 - the user's text, which may raise anything on a tensor without numbers
            pass
    try:
        with _budget(most_bytes):
            return contextlib.nullcontext(), *_made(_executed(source))
    except TaskError:
        raise
    except (Exception, SystemExit) as error:  # the same text: what it raises on real tensors is its own mistake
        first = (str(error).strip().splitlines() or [""])[0]
        raise TaskError(f"the task cannot be run: {type(error).__name__}: {first}") from error


def _executed(source: str) -> types.ModuleType:
    forget_own_modules()
    return namespace(source)


def _made(module: types.ModuleType) -> tuple[torch.nn.Module, tuple[Any, ...]]:
    """A dict of constructor arguments is passed by keyword, a list by position, as the judge does."""
    import torch

    init: Any = getattr(module, "get_init_inputs", list)()
    model = module.Model(**init) if isinstance(init, dict) else module.Model(*(init or []))
    if not isinstance(model, torch.nn.Module):
        raise TaskError("the task cannot be run: its `Model` is not a torch.nn.Module")
    inputs = module.get_inputs()
    return model, tuple(inputs) if isinstance(inputs, list | tuple) else (inputs,)


def _budget(most_bytes: float) -> Any:
    """A mode in which creating more than `most_bytes` of tensors out of nothing raises TaskError beforehand."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils import _pytree as pytree
    from torch.utils._python_dispatch import TorchDispatchMode

    class Budget(TorchDispatchMode):  # type: ignore[no-untyped-call]
        spent = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if not any(hasattr(leaf, "untyped_storage") for leaf in pytree.tree_leaves((args, kwargs))):
                with FakeTensorMode():
                    made = func(*args, **(kwargs or {}))
                self.spent += sum(getattr(leaf, "nbytes", 0) for leaf in pytree.tree_leaves(made))
                if self.spent > most_bytes:
                    raise TaskError(
                        f"the task cannot be run: constructing it takes more than {most_bytes / 2**20:.0f} MiB"
                    )
            return func(*args, **(kwargs or {}))

    return Budget()  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def _isolated() -> Iterator[None]:
    """What the text does to the interpreter stays here: output goes to stderr, settings and seeds are put back."""
    import torch

    dtype = torch.get_default_dtype()
    with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")  # export warns about attributes that it restores
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
            forget_own_modules()
