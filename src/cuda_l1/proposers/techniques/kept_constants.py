"""Constant folding: what forward computes from literals alone (masks, positions, zeros) is computed once per device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cuda_l1.proposers.techniques.derived import mark, steady
from cuda_l1.proposers.techniques.matching import is_view

if TYPE_CHECKING:
    from torch.fx import Node

    from cuda_l1.proposers.techniques.draft import Draft


class KeptConstants:
    """Values that depend on neither arguments nor weights (masks, positions, zero states) are computed once."""

    name = "kept_constants"
    devices = frozenset({"cpu", "cuda"})
    stage = 20
    precision: Literal["same"] = "same"

    def applies(self, draft: Draft) -> bool:
        """Whether forward builds anything from literals."""
        return bool(_work(draft))

    def apply(self, draft: Draft) -> None:
        """Mark it all."""
        mark(_work(draft))


def _work(draft: Draft) -> list[Node]:
    assert draft.graph_module is not None
    found = steady(draft.graph_module.graph)
    return [n for n, from_weights in found.items() if not from_weights and n.op == "call_function" and not is_view(n)]


TECHNIQUE = KeptConstants()
