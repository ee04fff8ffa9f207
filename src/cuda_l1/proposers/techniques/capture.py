"""From a task's source to its graph, on fake tensors: a capture allocates no memory for weights or inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_l1.errors import TaskError
from cuda_l1.tasks.graph_source import capture, print_forward
from cuda_l1.tasks.namespace import instantiated

if TYPE_CHECKING:
    import torch


class CaptureError(Exception):
    """The task's forward cannot be captured as one graph; techniques that need no graph still work."""


def capture_graph(source: str) -> torch.fx.GraphModule:
    """The forward of the source's `Model` on its `get_inputs()`, before decomposition, in the mode as constructed.

    Raises CaptureError when anything in the file or the export fails, or when the graph cannot be printed.
    """
    try:
        with instantiated(source) as (model, inputs):
            module = capture(model, inputs)
            print_forward(module)
            return module
    except TaskError as error:
        raise CaptureError(str(error)) from error
    except (Exception, SystemExit) as error:  # the forward is foreign code and may raise anything
        first = (str(error).strip().splitlines() or [""])[0]
        raise CaptureError(f"{type(error).__name__}: {first}") from error
