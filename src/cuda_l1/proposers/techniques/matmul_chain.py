"""Products of several matrices are associated in the order that takes the fewest operations."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.derived import mark
from cuda_l1.proposers.techniques.matching import call_nodes, emit, is_op, only_user, operands, shape
from cuda_l1.proposers.techniques.rewrite import Rewrite
from cuda_l1.proposers.techniques.steady import steady

if TYPE_CHECKING:
    from torch.fx import Graph, Node

PRODUCTS = ("aten.matmul.default", "aten.mm.default", "aten.mv.default")
LEAST_GAIN = 2.0
"""Reassociation changes rounding, so it must save this factor of multiplications."""

Tree = Any
"""A factor's index, or a pair of trees."""


class MatmulChain(Rewrite):
    """`(A @ B) @ c` -> `A @ (B @ c)`, and any longer chain, where that at least halves the multiplications.

    A product of weights alone costs nothing: it is kept between calls.
    """

    name = "matmul_chain"

    def sites(self, graph: Graph) -> Iterator[Node]:
        kept = frozenset(node for node, weights in steady(graph).items() if weights)
        for node in call_nodes(graph, *PRODUCTS):
            factors = factors_of(node)
            if len(factors) < 3:
                continue
            best, _ = cheapest(factors, kept)
            if cost_of(node) >= LEAST_GAIN * max(best, 1):
                yield node

    def rewrite(self, graph: Graph, site: Node) -> Node:
        kept = frozenset(node for node, weights in steady(graph).items() if weights)
        factors = factors_of(site)
        return _emit(graph, factors, cheapest(factors, kept)[1], kept)


def _is_product(node: Any) -> bool:
    """A product of two matrices, or of a matrix and a vector on either side."""
    if not is_op(node, *PRODUCTS):
        return False
    return tuple(len(shape(operand)) for operand in operands(node)[:2]) in ((2, 2), (2, 1), (1, 2))


def factors_of(node: Node) -> list[Any]:
    """The factors of a chain of products, a vector only at an end; one factor for what is no product."""
    if not _is_product(node):
        return [node]
    left, right = operands(node)[:2]
    before = factors_of(left) if _opens(left, first=True) else [left]
    after = factors_of(right) if _opens(right, first=False) else [right]
    return before + after


def _opens(node: Any, first: bool) -> bool:
    """Whether a product is part of the chain: nothing else reads it, and a vector it holds stays at the chain's end."""
    if not _is_product(node) or only_user(node) is None:
        return False
    left, right = operands(node)[:2]
    return len(shape(right)) == 2 if first else len(shape(left)) == 2


def _sizes(factors: list[Any]) -> list[int]:
    """n+1 sizes of a chain of n matrices; a vector is a row in front and a column behind."""
    first, last = shape(factors[0]), shape(factors[-1])
    inner = [shape(factor)[0] for factor in factors[1:]]
    return [first[0] if len(first) == 2 else 1, *inner, last[1] if len(last) == 2 else 1]


def cheapest(factors: list[Any], kept: frozenset[Any]) -> tuple[int, Tree]:
    """(multiplications, tree) of the best association of a chain."""
    sizes = _sizes(factors)

    @functools.cache
    def solve(start: int, stop: int) -> tuple[int, Tree]:
        if stop - start == 1:
            return 0, start
        free = all(factor in kept for factor in factors[start:stop])
        options = []
        for middle in range(start + 1, stop):
            (one, left), (two, right) = solve(start, middle), solve(middle, stop)
            work = one + two + sizes[start] * sizes[middle] * sizes[stop]
            options.append((0 if free else work, work, (left, right)))
        best = min(options, key=lambda option: option[:2])
        return best[0], best[2]

    return solve(0, len(factors))


def cost_of(node: Any) -> int:
    """Multiplications of a chain as it is written; a product of weights alone is computed in each call."""
    if not _is_product(node):
        return 0
    left, right = operands(node)[:2]
    rows = shape(left)[0] if len(shape(left)) == 2 else 1
    columns = shape(right)[1] if len(shape(right)) == 2 else 1
    work = rows * shape(right)[0] * columns
    before = cost_of(left) if _opens(left, first=True) else 0
    after = cost_of(right) if _opens(right, first=False) else 0
    return work + before + after


def _emit(graph: Graph, factors: list[Any], tree: Tree, kept: frozenset[Any]) -> Node:
    if isinstance(tree, int):
        factor: Node = factors[tree]
        return factor
    left, right = (_emit(graph, factors, side, kept) for side in tree)
    node = emit(graph, "matmul.default", left, right)
    if all(factors[index] in kept for index in _leaves(tree)):
        mark([node])
    return node


def _leaves(tree: Tree) -> list[int]:
    return [tree] if isinstance(tree, int) else [*_leaves(tree[0]), *_leaves(tree[1])]


TECHNIQUE = MatmulChain()
