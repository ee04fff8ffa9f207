"""Activations spelled out in several calls become the one call that PyTorch has for them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.matching import argument, call_nodes, emit, is_float, shape, tensor
from cuda_l1.proposers.techniques.pattern import Bind, Found, call, either_order, first, product
from cuda_l1.proposers.techniques.rewrite import Rewrite

if TYPE_CHECKING:
    from torch.fx import Graph, Node

X = Bind("x", is_float)
DIM = Bind("dim")
ONE_PLUS_ERF = either_order("add.Tensor", call("erf.default", product(math.sqrt(0.5), X)), 1)
CUBIC = (
    product(math.sqrt(2 / math.pi), either_order("add.Tensor", X, product(0.044715, X, X, X))),
    product(math.sqrt(2 / math.pi), X, either_order("add.Tensor", product(0.044715, X, X), 1)),
)
ONE_PLUS_TANH = either_order("add.Tensor", call("tanh.default", CUBIC), 1)
SOFTPLUS = (call("softplus.default", X, bind="softplus"), call("log1p.default", call("exp.default", X)))

FORMS: dict[str, Any] = {
    "silu.default": product(1, X, call("sigmoid.default", X)),
    "gelu.default": product(0.5, X, ONE_PLUS_ERF),
    "gelu.tanh": product(0.5, X, ONE_PLUS_TANH),
    "mish.default": product(1, X, call("tanh.default", SOFTPLUS)),
    "softplus.default": call("log1p.default", call("exp.default", X)),
    "log_sigmoid.default": call("log.default", call("sigmoid.default", X)),
    "log_softmax.int": call("log.default", call("softmax.int", X, DIM, bind="softmax")),
    "softmax.int": call("exp.default", call("log_softmax.int", X, DIM, bind="softmax")),
}


class FuseActivation(Rewrite):
    """`x * sigmoid(x)` -> silu, and gelu (both forms), mish, softplus, log-sigmoid, softmax and its logarithm alike."""

    name = "fuse_activation"

    def sites(self, graph: Graph) -> Iterator[Node]:
        for node in call_nodes(graph, "aten.mul.Tensor", "aten.log.default", "aten.log1p.default", "aten.exp.default"):
            if _form(node) is not None:
                yield node

    def rewrite(self, graph: Graph, site: Node) -> Node:
        form = _form(site)
        assert form is not None
        name, found = form
        if name == "gelu.tanh":
            return emit(graph, "gelu.default", found["x"], approximate="tanh")
        rest = (found["dim"],) if "dim" in found else ()
        return emit(graph, name, found["x"], *rest)


def _form(node: Node) -> tuple[str, Found] | None:
    for name, pattern in FORMS.items():
        found = first(node, pattern)
        if found is not None and shape(found["x"]) == shape(node) and _plain(node, found):
            return name, found
    return None


def _plain(node: Node, found: Found) -> bool:
    """No argument of the spelled-out calls gets lost: a dtype of softmax, a scale of softplus."""
    if tensor(found["x"]).dtype != tensor(node).dtype:
        return False
    softmax, softplus = found.get("softmax"), found.get("softplus")
    if softmax is not None and argument(softmax, "dtype") is not None:
        return False
    return softplus is None or (argument(softplus, "beta") == 1 and argument(softplus, "threshold") == 20)


TECHNIQUE = FuseActivation()
