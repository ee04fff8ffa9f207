"""Distances between all pairs, written with a broadcast difference, become `cdist`: no differences are stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.matching import (
    argument,
    call_nodes,
    emit,
    is_float,
    is_op,
    only_user,
    op_name,
    shape,
    tensor,
)
from cuda_l1.proposers.techniques.pattern import Bind, call, matches, product
from cuda_l1.proposers.techniques.rewrite import Rewrite

if TYPE_CHECKING:
    from torch.fx import Graph, Node

WITHOUT_PRODUCT = 2
"""cdist's mode that sums differences, as the written form does; the product form cancels for close points."""

DIFFERENCE = call("sub.Tensor", Bind("one", is_float), Bind("two", is_float), bind="difference")
POWERS = (
    (call("sum.dim_IntList", product(1, DIFFERENCE, DIFFERENCE), bind="reduction"), 2.0),
    (call("linalg_vector_norm.default", DIFFERENCE, bind="reduction"), 2.0),
    (call("sum.dim_IntList", call("abs.default", DIFFERENCE), bind="reduction"), 1.0),
)


class PairwiseDistance(Rewrite):
    """`((x[:, None] - y[None]) ** 2).sum(-1)` and its kin become `cdist`, which stores no differences."""

    name = "pairwise_distance"

    def sites(self, graph: Graph) -> Iterator[Node]:
        for node in call_nodes(graph, "aten.sum.dim_IntList", "aten.linalg_vector_norm.default"):
            if _pairs(node) is not None:
                yield node

    def rewrite(self, graph: Graph, site: Node) -> Node:
        found = _pairs(site)
        assert found is not None
        rows, columns, power = found
        left = emit(graph, "squeeze.dim", rows, -2)
        right = emit(graph, "squeeze.dim", columns, -3) if len(shape(columns)) > 2 else columns
        distances = emit(graph, "cdist.default", left, right, power, WITHOUT_PRODUCT)
        squared = power == 2.0 and is_op(site, "aten.sum.dim_IntList")
        return emit(graph, "square.default", distances) if squared else distances


def _pairs(node: Node) -> tuple[Any, Any, float] | None:
    """(rows (..., n, 1, d), columns (..., 1, m, d) or (m, d), power) of a matrix of distances."""
    for pattern, power in POWERS:
        for found in matches(node, pattern):
            difference = found["difference"]
            if not _over_features(found["reduction"], difference) or not _stored_for_this(difference):
                continue
            for rows, columns in ((found["one"], found["two"]), (found["two"], found["one"])):
                if _crossed(shape(rows), shape(columns)):
                    return rows, columns, power
    return None


def _over_features(reduction: Node, difference: Node) -> bool:
    """A plain reduction over the last dimension of single or double precision."""
    import torch

    rank = len(shape(difference))
    dims = argument(reduction, "dim")
    plain = argument(reduction, "dtype") is None and argument(reduction, "ord", 2) == 2
    last = bool(dims) and [dim % rank for dim in dims] == [rank - 1] and not argument(reduction, "keepdim")
    return plain and last and tensor(difference).dtype in (torch.float32, torch.float64)


def _stored_for_this(difference: Node) -> bool:
    """Whether nothing but the distance reads the differences."""
    user = only_user(difference)
    if user is None or argument(difference, "alpha") != 1:
        return False
    return op_name(user) == "aten.linalg_vector_norm.default" or only_user(user) is not None


def _crossed(rows: tuple[int, ...], columns: tuple[int, ...]) -> bool:
    """Whether `rows` and `columns` meet as (..., n, 1, d) and (..., 1, m, d), or (m, d)."""
    if len(rows) < 3 or len(columns) < 2 or rows[-1] != columns[-1]:
        return False
    return rows[-2] == 1 < rows[-3] and columns[-2] > 1 and (len(columns) == 2 or columns[-3] == 1)


TECHNIQUE = PairwiseDistance()
