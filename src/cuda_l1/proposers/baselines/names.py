"""Which names a task's source mentions: what a baseline has something to say about."""

from __future__ import annotations

import ast

from cuda_l1.tasks.own_modules import whole_tree


def mentioned(source: str) -> set[str]:
    """Every name, attribute and import that the source and its own modules mention; none where it is not Python."""
    try:
        nodes = list(ast.walk(whole_tree(source)))
    except SyntaxError:
        return set()
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    imported = {node.name for node in nodes if isinstance(node, ast.alias)}
    return attributes | imported | {node.id for node in nodes if isinstance(node, ast.Name)}


def convolutions(*ranks: int) -> set[str]:
    """What torch calls its convolutions of these numbers of dimensions, as modules and as functions."""
    return {f"{spelling}{rank}d" for rank in ranks for spelling in ("Conv", "conv", "ConvTranspose", "conv_transpose")}
