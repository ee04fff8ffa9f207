"""From a task's source to its graph, on fake tensors: a capture allocates no memory for weights or inputs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cuda_l1.errors import TaskError
from cuda_l1.proposers.techniques.matching import is_random
from cuda_l1.tasks.graph_source import capture, print_forward
from cuda_l1.tasks.namespace import instantiated

if TYPE_CHECKING:
    import torch


class CaptureError(Exception):
    """The task's forward cannot be captured as one graph; techniques that need no graph still work."""


def capture_graph(source: str) -> torch.fx.GraphModule:
    """The forward of the source's `Model` on its `get_inputs()`, before decomposition, in the mode as constructed.

    One that draws random numbers in train mode is compared with its own graph in eval mode, where candidates of it are
    judged by value (see `follow_mode`). Raises CaptureError when anything in the file or the export fails, when the
    graph cannot be printed, and where it holds a region under autocast.
    """
    try:
        with instantiated(source) as (model, inputs):
            module = capture(model, inputs)
            if any(map(_enables_autocast, module.graph.nodes)):
                raise CaptureError("a part of it runs under autocast, whose types a graph does not tell")
            if model.training and any(map(is_random, module.graph.nodes)):
                with _in_eval_mode(model), contextlib.suppress(TaskError):
                    follow_mode(module, capture(model, inputs))
            print_forward(module)
            return module
    except CaptureError:
        raise
    except TaskError as error:
        raise CaptureError(str(error)) from error
    except (Exception, SystemExit) as error:  # the forward is foreign code and may raise anything
        first = (str(error).strip().splitlines() or [""])[0]
        raise CaptureError(f"{type(error).__name__}: {first}") from error


def _enables_autocast(node: torch.fx.Node) -> bool:
    """Whether from here on results have other types than the graph's fake values say; they have not where it is off."""
    import torch

    return node.target is torch.amp.autocast_mode._enter_autocast and node.args[2:3] != (False,)


@contextlib.contextmanager
def _in_eval_mode(model: torch.nn.Module) -> Iterator[None]:
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def follow_mode(trained: torch.fx.GraphModule, evaluated: torch.fx.GraphModule) -> None:
    """Let flags that are set in train mode only (of dropout, of an LSTM with dropout) be the module's own `training`.

    Where the graphs of the two modes differ in more than such flags, `trained` stays as it is.
    """
    pairs = list(zip(trained.graph.nodes, evaluated.graph.nodes, strict=False))
    twins = dict(pairs)
    alike = all((mine.op, mine.target) == (theirs.op, theirs.target) for mine, theirs in pairs)
    if not alike or len(trained.graph.nodes) != len(evaluated.graph.nodes):
        return
    flags = []
    for mine, theirs in pairs:
        if _translated(mine.kwargs, twins) != theirs.kwargs or len(mine.args) != len(theirs.args):
            return
        for place, (here, there) in enumerate(zip(_translated(mine.args, twins), theirs.args, strict=True)):
            if here is True and there is False:
                flags.append((mine, place))
            elif here != there:
                return
    with trained.graph.inserting_before(next(iter(trained.graph.nodes))):
        mode = trained.graph.create_node("get_attr", "training")
    for node, place in flags:
        node.update_arg(place, mode)


def _translated(value: Any, twins: dict[Any, Any]) -> Any:
    from torch.fx.node import map_arg

    return map_arg(value, twins.__getitem__)
