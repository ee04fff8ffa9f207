"""From a task's source to its graph, on fake tensors: a capture allocates no memory for weights or inputs."""

from __future__ import annotations

import contextlib
import linecache
import sys
import types
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuda_l1.tasks.graph_source import capture, print_forward

if TYPE_CHECKING:
    import torch


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

    Raises CaptureError when anything in the file or the export fails, or when the graph cannot be printed.
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    try:
        with _quiet(), FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
            namespace = load_namespace(source, name)
            model = namespace.Model(*(namespace.get_init_inputs() or []))
            module = capture(model, tuple(namespace.get_inputs()))
            print_forward(module)
            return module
    except (Exception, SystemExit) as error:  # the file is foreign code and may raise anything
        lines = str(error).strip().splitlines() or [""]
        raise CaptureError(f"{type(error).__name__}: {lines[0]}") from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Export warns about attributes it restores; a proposer has nothing to tell a person about that."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
