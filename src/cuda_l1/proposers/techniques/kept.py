"""What the two techniques share that keep steady values between calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cuda_l1.proposers.techniques.derived import mark
from cuda_l1.proposers.techniques.matching import is_view
from cuda_l1.proposers.techniques.steady import steady

if TYPE_CHECKING:
    from torch.fx import Node

    from cuda_l1.proposers.techniques.draft import Draft


class Kept:
    """Values that depend on no argument of forward are computed once."""

    devices = frozenset({"cpu", "cuda"})
    stage = 20
    precision: Literal["same"] = "same"
    from_weights: bool
    """Whether it is the values that depend on weights, or those that do not."""

    def applies(self, draft: Draft) -> bool:
        """Whether forward computes such a value, beyond looking at another one differently."""
        return bool(self._work(draft))

    def apply(self, draft: Draft) -> None:
        """Mark them all."""
        mark(self._work(draft))

    def _work(self, draft: Draft) -> list[Node]:
        assert draft.graph_module is not None
        found = steady(draft.graph_module.graph)
        mine = [node for node, from_weights in found.items() if from_weights == self.from_weights]
        return [node for node in mine if node.op == "call_function" and not is_view(node)]
