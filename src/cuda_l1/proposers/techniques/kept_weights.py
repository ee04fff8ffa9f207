"""What forward computes from its weights alone is kept between calls, under the weights' version counters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cuda_l1.proposers.techniques.derived import mark, steady
from cuda_l1.proposers.techniques.matching import is_view

if TYPE_CHECKING:
    from torch.fx import Node

    from cuda_l1.proposers.techniques.draft import Draft


class KeptWeights:
    """Values that depend on weights alone (masked, normalised, packed) are computed once per change of weights."""

    name = "kept_weights"
    devices = frozenset({"cpu", "cuda"})
    stage = 20
    precision: Literal["same"] = "same"

    def applies(self, draft: Draft) -> bool:
        """Whether forward computes anything, beyond looking at it differently, from weights alone."""
        return bool(_work(draft))

    def apply(self, draft: Draft) -> None:
        """Mark it all."""
        mark(_work(draft))


def _work(draft: Draft) -> list[Node]:
    assert draft.graph_module is not None
    found = steady(draft.graph_module.graph)
    return [n for n, from_weights in found.items() if from_weights and n.op == "call_function" and not is_view(n)]


TECHNIQUE = KeptWeights()
