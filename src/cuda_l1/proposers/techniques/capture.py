"""From a task's source to its graph, on fake tensors: a capture allocates no memory for weights or inputs."""

from __future__ import annotations

import contextlib
import linecache
import sys
import types
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cuda_l1.tasks.graph_source import capture, print_forward

if TYPE_CHECKING:
    import torch

MOST_BYTES = 1 << 30
"""Weights and inputs of a task that cannot be constructed on fake tensors may take this much memory."""


class CaptureError(Exception):
    """The task's forward cannot be captured as one graph; techniques that need no graph still work."""


def load_namespace(source: str, name: str) -> types.ModuleType:
    """Execute a task's source in a fresh module called `name` (its text is kept for tracebacks and inspection).

    The source is the user's own file; whatever it raises passes through.
    """
    module = types.ModuleType(name)
    module.__file__ = f"<{name}>"
    linecache.cache[module.__file__] = (len(source), None, source.splitlines(keepends=True), module.__file__)
    sys.modules[name] = module
    exec(compile(source, module.__file__, "exec"), module.__dict__)
    return module


def capture_graph(source: str, name: str) -> torch.fx.GraphModule:
    """The forward of the source's `Model` on its `get_inputs()`, before decomposition, in the mode as constructed.

    Fake tensors first; a constructor that needs numbers (`.item()`) is run again on real ones within `MOST_BYTES`.
    Raises CaptureError when anything in the file or the export fails, or when the graph cannot be printed.
    """
    import torch

    try:
        with _isolated(), torch.no_grad():
            mode, model, inputs = _instantiate(source, name)
            with mode:
                module = capture(model, inputs)
            print_forward(module)
            return module
    except (Exception, SystemExit) as error:  # the file is foreign code and may raise anything
        lines = str(error).strip().splitlines() or [""]
        raise CaptureError(f"{type(error).__name__}: {lines[0]}") from error


def _instantiate(source: str, name: str) -> tuple[Any, torch.nn.Module, tuple[Any, ...]]:
    """(mode to trace in, the model, its arguments)."""
    from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

    fake = FakeTensorMode(allow_non_fake_inputs=True)
    try:
        with fake:
            return fake, *_run(load_namespace(source, name))
    except DataDependentOutputException:
        with _budget(MOST_BYTES):
            return contextlib.nullcontext(), *_run(load_namespace(source, name))


def _run(namespace: types.ModuleType) -> tuple[torch.nn.Module, tuple[Any, ...]]:
    return namespace.Model(*(namespace.get_init_inputs() or [])), tuple(namespace.get_inputs())


def _budget(most_bytes: int) -> Any:
    """A mode in which creating more than `most_bytes` of tensors out of nothing raises CaptureError beforehand."""
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
                    raise CaptureError(f"constructing it takes more than {most_bytes >> 20} MiB")
            return func(*args, **(kwargs or {}))

    return Budget()  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def _isolated() -> Iterator[None]:
    """What the file does to the interpreter stays here: output goes to stderr, settings and seeds are put back."""
    import torch

    dtype = torch.get_default_dtype()
    with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")  # export warns about attributes that it restores
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
