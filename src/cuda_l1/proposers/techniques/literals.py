"""The actual value of what a graph computes from literals alone, where it is small: masks, positions, constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.matching import numel
from cuda_l1.proposers.techniques.steady import steady

if TYPE_CHECKING:
    import torch
    from torch.fx import Node

MOST_ELEMENTS = 1 << 24
"""Larger values are not computed only to be looked at."""


def literal_value(node: Node) -> torch.Tensor | None:
    """The tensor, on the CPU, that `node` has in every call whatever the arguments and weights; None otherwise."""
    import torch

    found = steady(node.graph)
    if found.get(node, True) or numel(node) > MOST_ELEMENTS:
        return None
    values: dict[Node, Any] = {}
    with torch.no_grad():
        for step in _ancestors(node):
            values[step] = _call(step, values)
    result: torch.Tensor = values[node]
    return result


def _ancestors(node: Node) -> list[Node]:
    """`node` and all it is computed from, in the order of the graph."""
    wanted = {node}
    for step in reversed(node.graph.nodes):
        if step in wanted:
            wanted.update(step.all_input_nodes)
    return [step for step in node.graph.nodes if step in wanted]


def _call(node: Node, values: dict[Node, Any]) -> Any:
    from torch.fx.node import map_arg

    if node.op == "get_attr":
        return getattr(node.graph.owning_module, str(node.target))
    args = map_arg(node.args, lambda source: values[source])
    kwargs = map_arg(node.kwargs, lambda source: values[source])
    return node.target(*args, **kwargs)  # type: ignore[operator]
