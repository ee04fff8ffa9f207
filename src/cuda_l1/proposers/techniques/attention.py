"""Attention written out, `softmax(q @ k^T * scale + mask) @ v`, becomes the fused kernel that PyTorch has for it."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.alignment import align_inputs
from cuda_l1.proposers.techniques.attention_parts import AttentionParts, Mask, attention_parts
from cuda_l1.proposers.techniques.derived import mark
from cuda_l1.proposers.techniques.draft import Draft
from cuda_l1.proposers.techniques.literals import literal_value
from cuda_l1.proposers.techniques.matching import call_nodes, emit, shape, tensor
from cuda_l1.proposers.techniques.rewrite import Rewrite

if TYPE_CHECKING:
    import torch
    from torch.fx import Graph, Node

FUSED = "aten.scaled_dot_product_attention.default"


class Attention(Rewrite):
    """Written-out attention becomes `scaled_dot_product_attention`: the scores are never stored.

    Assumes that no row has every key masked: there the written form gives NaN or a mean, the kernel zeros.
    """

    name = "attention"

    def apply(self, draft: Draft) -> None:
        super().apply(draft)
        draft.last.append(functools.partial(align_inputs, operations=(FUSED,)))

    def sites(self, graph: Graph) -> Iterator[Node]:
        for node in call_nodes(graph, "aten.matmul.default", "aten.bmm.default", "aten.einsum.default"):
            if attention_parts(node) is not None:
                yield node

    def rewrite(self, graph: Graph, site: Node) -> Node:
        parts = attention_parts(site)
        assert parts is not None
        causal = _is_causal(parts, site)
        mask = None if causal else _mask(graph, parts)
        key = parts.key if parts.key_has_rows else emit(graph, "transpose.int", parts.key, -2, -1)
        lift = 4 - len(shape(site))
        query, key, value = (_lifted(graph, node, lift) for node in (parts.query, key, parts.value))
        if mask is not None and len(shape(mask)) > 2:
            mask = _lifted(graph, mask, lift)
        result = emit(graph, FUSED.removeprefix("aten."), query, key, value, mask, 0.0, causal, scale=parts.scale)
        return emit(graph, "reshape.default", result, list(shape(site))) if lift else result


def _lifted(graph: Graph, node: Node, lift: int) -> Node:
    """One head, and one batch for two dimensions: the fused kernels want (batch, heads, rows, features)."""
    for _ in range(lift):
        node = emit(graph, "unsqueeze.default", node, len(shape(node)) - 2)
    return node


def _is_causal(parts: AttentionParts, site: Node) -> bool:
    """Whether the only mask is a literal that hides exactly the later keys of a square."""
    import torch

    rows = shape(site)[-2]
    if len(parts.masks) != 1 or shape(parts.masks[0].node)[-2:] != (rows, rows):
        return False
    hidden = _hidden(parts.masks[0])
    later = torch.ones(rows, rows, dtype=torch.bool).triu(1)
    return hidden is not None and bool((hidden == later).all())


def _hidden(mask: Mask) -> torch.Tensor | None:
    """Which scores a literal mask hides entirely; None for a mask that is no literal or also shifts scores."""
    value = literal_value(mask.node)
    if value is None or mask.kind != "add":
        return None if value is None else (value.bool() if mask.kind == "fill" else ~value.bool())
    hidden = value <= -1e4
    return hidden if bool((value[~hidden] == 0).all()) else None


def _mask(graph: Graph, parts: AttentionParts) -> Node | None:
    """All masks as the one tensor that the kernel takes: booleans that keep, or numbers that are added."""
    if len(parts.masks) == 1 and parts.masks[0].kind != "add" and parts.masks[0].fill == -math.inf:
        mask = parts.masks[0]
        return mask.node if mask.kind == "keep" else _marked(emit(graph, "logical_not.default", mask.node))
    total: Any = None
    for mask in parts.masks:
        added = _additive(graph, mask, tensor(parts.query).dtype)
        total = added if total is None else _marked(emit(graph, "add.Tensor", total, added))
    return total if total is None or len(shape(total)) >= 2 else emit(graph, "unsqueeze.default", total, 0)


def _additive(graph: Graph, mask: Mask, dtype: torch.dtype) -> Node:
    """A mask as numbers to add: zero where scores stay, the fill where they are hidden."""
    if mask.kind == "add":
        node: Node = mask.node
        return node
    hides = mask.node if mask.kind == "fill" else _marked(emit(graph, "logical_not.default", mask.node))
    zeros = emit(graph, "zeros_like.default", hides, dtype=dtype)
    return _marked(emit(graph, "masked_fill.Scalar", zeros, hides, mask.fill))


def _marked(node: Node) -> Node:
    mark([node])
    return node


TECHNIQUE = Attention()
